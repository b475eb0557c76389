import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { OPERATIONS, buildPattern, type OperationName, type ReplyOf, type RequestOf } from '@broomwagon/contracts';
import { ContractPipe } from '../validation/contract.pipe';
import type { MessageContext, PARKED } from './message-context';

/** Handler of an operation, which may return {@link PARKED} and send the reply later. */
type OperationHandler<Name extends OperationName> = (
  body: RequestOf<Name>,
  context: MessageContext,
) => Promise<ReplyOf<Name> | typeof PARKED>;

/**
 * Makes a method of a controller the handler of an operation of the protocol: `@Operation('lb.release') release(body:
 * ReleaseRequest, { pool }: MessageContext)`. `OPERATIONS` of libs/contracts has the class for the validation of the
 * body. The compiler checks the types of body and reply.
 */
export function Operation<Name extends OperationName>(name: Name) {
  return <Handler extends OperationHandler<Name>>(
    controller: object,
    method: string,
    descriptor: TypedPropertyDescriptor<Handler>,
  ): void => {
    Payload(new ContractPipe(OPERATIONS[name].request))(controller, method, 0);
    Ctx()(controller, method, 1);
    MessagePattern(buildPattern(name))(controller, method, descriptor);
  };
}
