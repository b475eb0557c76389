import type { ArgumentMetadata, PipeTransform } from '@nestjs/common';
import { validatorOf } from './compiled-validator';
import type { ContractClass } from './contract-schema';
import { encodeIds } from './encode-ids';

const NOT_CONTRACTS = new Set<unknown>([Object, Array, String, Number, Boolean, undefined]);

/**
 * Validates bodies by the compiled contract: `@Payload(new ContractPipe(AcquireRequest))`, or globally by the type of
 * the parameter. Ids of a request are encoded then. Parameters that are no body, or no class, pass unchanged.
 */
export class ContractPipe implements PipeTransform {
  constructor(private readonly contract?: ContractClass) {}

  transform(value: unknown, metadata: ArgumentMetadata): unknown {
    const contract = this.contract ?? (metadata.metatype as ContractClass | undefined);
    if (metadata.type !== 'body' || contract === undefined || NOT_CONTRACTS.has(contract)) {
      return value;
    }
    if (value instanceof contract) {
      return value;
    }
    return encodeIds(contract, validatorOf(contract).validate(value));
  }
}
