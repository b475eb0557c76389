import 'reflect-metadata';
import { IsId, IsName } from '@broomwagon/contracts';
import { Allow, IsOptional, IsString, ValidateIf } from 'class-validator';

const present = (field: keyof PromptLine) => ValidateIf((line: PromptLine) => line[field] !== undefined);

/** One line of a prompts file; the id rules and the contents of a prompt are those of the protocol. */
export class PromptLine {
  @present('id') @IsId() @IsString() id?: string;
  @present('domain') @IsName() @IsString() domain?: string;
  @Allow() prompt?: unknown;
  @Allow() messages?: unknown;
  @Allow() promptTokenIds?: unknown;
  /** Further fields of the engine's request, passed on unread. */
  @Allow() engineFields?: unknown;
  /** For the reader's own grading; not sent anywhere. */
  @IsOptional() @Allow() answer?: unknown;
}
