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
  Min,
  ValidateIf,
  ValidateNested,
} from 'class-validator';

class ChatMessage {
  @IsString() @IsNotEmpty() role!: string;
  @IsString() content!: string;
}

const present = (field: keyof PromptLine) => ValidateIf((line: PromptLine) => line[field] !== undefined);

/** One line of a prompts file; the id rules are those of the protocol. */
export class PromptLine {
  @present('id') @IsString() @IsId() id?: string;
  @present('domain') @IsString() @IsId() domain?: string;
  @present('prompt') @IsString() @IsNotEmpty() prompt?: string;
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
  promptTokenIds?: number[];
  /** For the reader's own grading; not sent anywhere. */
  @IsOptional() @Allow() answer?: unknown;
}
