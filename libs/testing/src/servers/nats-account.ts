import { nkeys } from 'nats';

/** Configuration of a NATS server with one account by JWT, and credentials of a user of this account. */
export function buildNatsAccount() {
  const [operator, account, system, user] = [
    nkeys.createOperator(),
    nkeys.createAccount(),
    nkeys.createAccount(),
    nkeys.createUser(),
  ];
  const encode = (value: string | Uint8Array) => Buffer.from(value).toString('base64url');
  const nowS = () => Math.floor(Date.now() / 1_000);
  const sign = (issuer: typeof operator, subject: typeof operator, nats: object, endsInS?: number): string => {
    const head = encode(JSON.stringify({ typ: 'JWT', alg: 'ed25519-nkey' }));
    const [iss, sub] = [issuer.getPublicKey(), subject.getPublicKey()];
    const exp = endsInS === undefined ? undefined : nowS() + endsInS;
    const body = encode(JSON.stringify({ jti: `${sub}-${exp}`, iat: nowS() - 5, iss, sub, name: sub, exp, nats }));
    return `${head}.${body}.${encode(issuer.sign(Buffer.from(`${head}.${body}`)))}`;
  };
  const limits = { subs: -1, data: -1, payload: -1, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 };
  const accountClaims = { limits, default_permissions: { pub: {}, sub: {} }, type: 'account', version: 2 };
  const userClaims = { pub: {}, sub: {}, subs: -1, data: -1, payload: -1, type: 'user', version: 2 };
  const seed = Buffer.from(user.getSeed()).toString();
  return {
    configuration: [
      `operator: ${sign(operator, operator, { type: 'operator', version: 2 })}`,
      `system_account: ${system.getPublicKey()}`,
      'resolver: MEMORY',
      'resolver_preload: {',
      `  ${account.getPublicKey()}: ${sign(operator, account, accountClaims)}`,
      `  ${system.getPublicKey()}: ${sign(operator, system, accountClaims)}`,
      '}',
    ].join('\n'),
    /** Key that signs JWTs of further users. */
    accountSeed: Buffer.from(account.getSeed()).toString(),
    /** Contents of a `.creds` file whose JWT ends after a number of seconds. */
    formatCredentials: (endsInS: number) =>
      [
        '-----BEGIN NATS USER JWT-----',
        sign(account, user, userClaims, endsInS),
        '------END NATS USER JWT------',
        '',
        '-----BEGIN USER NKEY SEED-----',
        seed,
        '------END USER NKEY SEED------',
        '',
      ].join('\n'),
  };
}
