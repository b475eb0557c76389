import type { PipeTransform } from '@nestjs/common';
import { validatorOf } from './compiled-validator';
import type { ContractClass } from './contract-schema';
import { encodeIds } from './encode-ids';

/** Validates a body by the compiled contract and encodes its ids: `@Payload(new ContractPipe(AcquireRequest))`. */
export class ContractPipe implements PipeTransform {
  constructor(private readonly contract: ContractClass) {}

  /** @throws BroomwagonError VALIDATION_FAILED */
  transform(body: unknown): unknown {
    return encodeIds(this.contract, validatorOf(this.contract).validate(body));
  }
}
