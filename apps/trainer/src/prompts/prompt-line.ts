import 'reflect-metadata';
import { IsId } from '@broomwagon/contracts';
import { Type } from 'class-transformer';
import {
  Allow,
  ArrayMaxSize,
  ArrayMinSize,
  IsArray,
  IsInt,
  IsNotEmpty,
  IsOptional,
  IsString,
  Max,
  Min,
  ValidateIf,
  ValidateNested,
} from 'class-validator';

/** Above it a number is no token id, whatever the vocabulary. */
const MAX_TOKEN_ID = 2 ** 31 - 1;

class ChatMessage {
  @IsString() @IsNotEmpty() role!: string;
  @IsString() content!: string;
}

const present = (field: keyof PromptLine) => ValidateIf((line: PromptLine) => line[field] !== undefined);

/** One line of a prompts file; the id rules are those of the protocol. */
export class PromptLine {
  @present('id') @IsId() @IsString() id?: string;
  @present('domain') @IsId() @IsString() domain?: string;
  @present('prompt') @IsNotEmpty() @IsString() prompt?: string;
  @present('messages')
  @IsArray()
  @ArrayMinSize(1)
  @ArrayMaxSize(10_000)
  @ValidateNested({ each: true, message: 'each of messages must be an object with role and content' })
  @Type(() => ChatMessage)
  messages?: ChatMessage[];
  @present('promptTokenIds')
  @IsArray()
  @ArrayMinSize(1)
  @IsInt({ each: true })
  @Min(0, { each: true })
  @Max(MAX_TOKEN_ID, { each: true })
  promptTokenIds?: number[];
  /** For the reader's own grading; not sent anywhere. */
  @IsOptional() @Allow() answer?: unknown;
}
