import 'reflect-metadata';
import { IsId, IsName } from '@broomwagon/contracts';
import { IsObject, IsOptional } from 'class-validator';

/** One line of a prompts file; the id rules and the contents of a prompt are those of the protocol. */
export class PromptLine {
  @IsOptional() @IsId() id?: string;
  @IsOptional() @IsName() domain?: string;
  @IsOptional() prompt?: unknown;
  @IsOptional() messages?: unknown;
  @IsOptional() promptTokenIds?: unknown;
  /** Further fields of the engine's request, passed on unread. */
  @IsOptional() @IsObject() engineFields?: Record<string, unknown>;
  /** For the grading by the reader of the results; not sent anywhere. */
  @IsOptional() answer?: unknown;
}
