import 'reflect-metadata';
import { IsId, IsName } from '@broomwagon/contracts';
import { IsObject, IsOptional } from 'class-validator';

/** One line of a prompts file. The protocol defines the rules for ids and the contents of a prompt. */
export class PromptLine {
  @IsOptional() @IsId() id?: string;
  @IsOptional() @IsName() domain?: string;
  @IsOptional() prompt?: unknown;
  @IsOptional() messages?: unknown;
  @IsOptional() promptTokenIds?: unknown;
  /** Further fields of the engine's request, passed on unread. */
  @IsOptional() @IsObject() engineFields?: Record<string, unknown>;
  /** Reference answer, for the reader of the results that grades them; not sent anywhere. */
  @IsOptional() answer?: unknown;
}
