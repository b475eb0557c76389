import { Controller } from '@nestjs/common';
import {
  AbortRequestsRequest,
  invalidField,
  SaveManyRequest,
  SaveRequest,
  ClaimRequest,
  CompleteManyRequest,
  CompleteRequest,
  FailRequest,
  GetRequestRequest,
  ListGroupsRequest,
  ListRequestsRequest,
  RequestSegmentsRequest,
} from '@broomwagon/contracts';
import { MessageContext, Operation } from '@broomwagon/messaging';
import { InspectionStore } from '@broomwagon/state';
import { AbortService } from '../aborts/abort.service';
import { CompletionService } from './completion.service';
import { RequestService } from './request.service';

/**
 * The operations `request.*` and `group.list`. Workers claim requests, save partial tokens and end attempts; any caller
 * may abort and list.
 */
@Controller()
export class RequestController {
  constructor(
    private readonly requests: RequestService,
    private readonly completions: CompletionService,
    private readonly aborts: AbortService,
    private readonly inspections: InspectionStore,
  ) {}

  @Operation('request.claim')
  claim(body: ClaimRequest, { pool, replyTo }: MessageContext) {
    return this.requests.claim(pool, body, replyTo);
  }

  @Operation('request.segments')
  segments(body: RequestSegmentsRequest, { pool }: MessageContext) {
    return this.requests.segments(pool, body);
  }

  @Operation('request.save')
  save(body: SaveRequest, { pool }: MessageContext) {
    return this.requests.save(pool, body);
  }

  @Operation('request.save-many')
  saveMany(body: SaveManyRequest, { pool }: MessageContext) {
    return this.requests.saveMany(pool, body);
  }

  @Operation('request.complete')
  complete(body: CompleteRequest, { pool }: MessageContext) {
    return this.completions.complete(pool, body);
  }

  @Operation('request.complete-many')
  completeMany(body: CompleteManyRequest, { pool }: MessageContext) {
    return this.completions.completeMany(pool, body);
  }

  @Operation('request.fail')
  fail(body: FailRequest, { pool }: MessageContext) {
    return this.requests.fail(pool, body);
  }

  @Operation('request.abort')
  abort(body: AbortRequestsRequest, { pool }: MessageContext) {
    return this.aborts.abort(pool, body);
  }

  @Operation('request.get')
  get({ requestId }: GetRequestRequest, { pool }: MessageContext) {
    return this.inspections.request(pool, { requestId });
  }

  @Operation('group.list')
  groups(body: ListGroupsRequest, { pool }: MessageContext) {
    return this.inspections.groups(pool, body);
  }

  @Operation('request.list')
  async list(body: ListRequestsRequest, { pool }: MessageContext) {
    if ((body.job === undefined) === (body.workerId === undefined)) {
      throw invalidField('job', 'exactly one of job and workerId is required');
    }
    return this.inspections.requests(pool, body);
  }
}
