import type { PipeTransform } from '@nestjs/common';
import { encodeIds } from './encode-ids';
import type { ContractClass } from './json-schema';
import { validate } from './validator';

/** Validates a body by its class and encodes its ids: `@Payload(new ContractPipe(AcquireRequest))`. */
export class ContractPipe implements PipeTransform {
  constructor(private readonly contract: ContractClass) {}

  /** @throws BroomwagonError VALIDATION_FAILED */
  transform(body: unknown): unknown {
    return encodeIds(this.contract, validate(this.contract, body));
  }
}
