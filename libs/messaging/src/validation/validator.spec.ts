import { plainToInstance, Type } from 'class-transformer';
import {
  ArrayMaxSize,
  IsArray,
  IsBoolean,
  IsIn,
  IsInt,
  IsNumber,
  IsObject,
  IsOptional,
  IsString,
  Matches,
  Max,
  MaxLength,
  Min,
  MinLength,
  registerDecorator,
  ValidateIf,
  ValidateNested,
  validateSync,
} from 'class-validator';
import * as fc from 'fast-check';
import { describe, expect, inject, it } from 'vitest';
import {
  AcquireManyRequest,
  AcquireRequest,
  BroomwagonError,
  LoadBalancerStatusRequest,
  NextRoundRequest,
  OPERATIONS,
} from '@broomwagon/contracts';
import { getSchema } from './json-schema';
import { validate } from './validator';

/** A validator of our own, which sees the whole object. */
function IsAtMostField(other: string): PropertyDecorator {
  return (target, name) =>
    registerDecorator({
      name: 'isAtMostField',
      target: target.constructor,
      propertyName: name as string,
      constraints: [other],
      validator: {
        validate: (value, args) => value <= ((args!.object as Record<string, number>)[other] ?? Infinity),
        defaultMessage: () => `must be at most ${other}`,
      },
    });
}

class Inner {
  @IsString() @MaxLength(4) name!: string;
  @IsOptional() @IsNumber() weight?: number;
}
class Outer {
  @Matches(/^[a-z]+$/) id!: string;
  @IsInt() @Min(0) @Max(9) level!: number;
  @IsOptional() @IsInt() @IsAtMostField('level') part?: number;
  @IsOptional() @IsBoolean() flag?: boolean;
  @IsOptional() @IsIn(['a', 'b']) kind?: string;
  @IsOptional() @IsArray() @ArrayMaxSize(3) @IsInt({ each: true }) tokens?: number[];
  @IsOptional() @IsObject() extra?: Record<string, unknown>;
  @IsOptional() @IsString() @MinLength(2) note?: string;
  @IsOptional() @ValidateNested() @Type(() => Inner) inner?: Inner;
  @IsOptional() @IsArray() @ValidateNested({ each: true }) @Type(() => Inner) list?: Inner[];
}

const good = { id: 'abc', level: 2, inner: { name: 'x' }, list: [{ name: 'y', weight: 1.5 }], extra: { a: [1] } };

function catchFailure(contract: new () => object, body: unknown): BroomwagonError {
  try {
    validate(contract, body);
  } catch (error) {
    return error as BroomwagonError;
  }
  throw new Error('was accepted');
}

/** Verdict of class-validator on a body without nulls; undefined where class-transformer cannot read it. */
function isValidForClassValidator(contract: new () => object, body: object): boolean | undefined {
  try {
    const options = { whitelist: true, forbidNonWhitelisted: true, forbidUnknownValues: false };
    return validateSync(plainToInstance(contract, structuredClone(body)), options).length === 0;
  } catch {
    return undefined;
  }
}

function isAccepted(contract: new () => object, body: object): boolean {
  try {
    return validate(contract, structuredClone(body)) !== undefined;
  } catch {
    return false;
  }
}

describe('validate', () => {
  it('returns a valid body as it is', () => {
    expect(validate(Outer, structuredClone(good))).toEqual(good);
  });

  it('compiles every contract of the protocol, and refuses rules that it does not know', () => {
    for (const { request } of Object.values(OPERATIONS)) {
      expect(catchFailure(request, { surprise: 1 }).code).toBe('VALIDATION_FAILED');
    }
    class Conditional {
      @ValidateIf(() => false) @IsString() name!: string;
    }
    expect(() => getSchema(Conditional)).toThrow('Conditional.name: rule conditionalValidation');
  });

  it('names the first field by its dotted path and lists all', () => {
    const error = catchFailure(Outer, { id: 'A', level: '2', list: [{ name: 'ok' }, { name: 'too long' }] });
    expect(error).toMatchObject({ code: 'VALIDATION_FAILED', field: 'id' });
    const fields = (error.details as { field: string }[]).map(({ field }) => field);
    expect(fields).toContain('level');
    expect(fields).toContain('list.1.name');
  });

  it.each([
    ['an unknown field', { ...good, surprise: 1 }, 'surprise'],
    ['an unknown field that is null', { ...good, surprise: null }, 'surprise'],
    ['an unknown nested field', { ...good, inner: { name: 'x', other: 1 } }, 'inner.other'],
    ['a field that every object has', { ...good, constructor: 1 }, 'constructor'],
    ['a field __proto__', JSON.parse('{"id":"abc","level":1,"__proto__":{}}'), '__proto__'],
    ['a number given as text', { ...good, level: '2' }, 'level'],
    ['an array for an object', { ...good, inner: [] }, 'inner'],
    ['an object for an array', { ...good, list: {} }, 'list'],
    ['an array in a list of objects', { ...good, list: [[]] }, 'list.0'],
    ['null in a list of objects', { ...good, list: [null] }, 'list.0'],
    ['a custom rule over two fields', { ...good, part: 3 }, 'part'],
    ['an array for the body', [], ''],
    ['text for the body', 'x', ''],
    ['NaN', { ...good, level: Number.NaN }, 'level'],
  ])('refuses %s', (_, body, field) => {
    expect(catchFailure(Outer, body)).toMatchObject({ code: 'VALIDATION_FAILED', field });
  });

  it('reports a missing field once, not each rule it breaks', () => {
    const error = catchFailure(Outer, { level: 1, inner: {} });
    expect(error.message).toBe('id: is missing (and 1 more)');
    expect(error.details).toEqual([
      { field: 'id', reason: 'is missing' },
      { field: 'inner.name', reason: 'is missing' },
    ]);
  });

  it('takes null for absent in the fields of a contract, at any depth, and leaves free-form objects alone', () => {
    const sent = { ...good, flag: null, inner: { name: 'x', weight: null }, list: [{ name: 'y', weight: null }] };
    const extra = { a: [null], b: null };
    const wanted = { ...good, list: [{ name: 'y' }], extra };
    expect(validate(Outer, { ...structuredClone(sent), extra })).toEqual({ ...wanted, inner: { name: 'x' } });
    expect(catchFailure(Outer, { ...good, id: null }).message).toBe('id: is missing');
    expect(catchFailure(Outer, { ...good, tokens: [null] })).toMatchObject({ field: 'tokens' });
    expect(catchFailure(Outer, { ...good, list: [null] })).toMatchObject({ field: 'list.0' });
  });

  it('refuses a number that is too large for JSON, which is Infinity after it is parsed', () => {
    const body = JSON.parse('{ "id": "abc", "level": 2, "inner": { "name": "x", "weight": 1e400 } }') as object;
    expect(catchFailure(Outer, body)).toMatchObject({ code: 'VALIDATION_FAILED', field: 'inner.weight' });
  });

  it('refuses a missing nested object, which class-validator alone lets pass', () => {
    expect(catchFailure(NextRoundRequest, { job: 'j', groupsPerStep: 1, remainingGroups: 1 }).field).toBe('policy');
  });

  it('refuses fields on a contract without any, and survives hostile names and depths', () => {
    expect(validate(LoadBalancerStatusRequest, {})).toEqual({});
    expect(catchFailure(LoadBalancerStatusRequest, { a: 1 }).field).toBe('a');
    const named = { ...good, extra: { constructor: 'x', toString: 1 } };
    expect(validate(Outer, named)).toEqual(named);
    const deep = JSON.parse(`${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`) as object;
    expect(catchFailure(Outer, { ...good, extra: deep })).toMatchObject({ code: 'VALIDATION_FAILED', field: 'extra' });
    const polluted = JSON.parse('{"id":"abc","level":1,"extra":{"a":[{"__proto__":{"admin":true}}]}}') as object;
    expect(catchFailure(Outer, polluted)).toMatchObject({ code: 'VALIDATION_FAILED', field: 'extra' });
  });

  it('bounds the error of a body with thousands of faults', () => {
    const acquires = Array.from({ length: 2_000 }, () => ({ acquireId: ' ' }));
    const error = catchFailure(AcquireManyRequest, { workerId: 'w', workerEpoch: 'e1', acquires });
    expect(JSON.stringify(error.toWire()).length).toBeLessThan(20_000);
    const long = catchFailure(Outer, { ...good, ['x'.repeat(10_000)]: 1 });
    expect(JSON.stringify(long.toWire()).length).toBeLessThan(2_000);
  });

  it('property: accepts the bodies that class-validator accepts, and no others', () => {
    const junk = fc.oneof(fc.jsonValue(), fc.constantFrom('toString', '', 'abc', 3, 2.5, -1, null));
    const mostly = <T>(usual: fc.Arbitrary<T>): fc.Arbitrary<unknown> =>
      fc.oneof({ arbitrary: usual, weight: 20 }, { arbitrary: junk, weight: 1 });
    const inner = fc.record(
      { name: mostly(fc.string({ maxLength: 5 })), weight: mostly(fc.double()) },
      { requiredKeys: [] },
    );
    const known = fc.record(
      {
        id: mostly(fc.constantFrom('abc', 'z')),
        level: mostly(fc.integer({ min: -1, max: 10 })),
        part: mostly(fc.integer({ min: 0, max: 9 })),
        flag: mostly(fc.boolean()),
        kind: mostly(fc.constantFrom('a', 'b', 'c')),
        tokens: mostly(fc.array(fc.integer(), { maxLength: 4 })),
        extra: mostly(
          fc.dictionary(fc.oneof({ arbitrary: fc.string(), weight: 20 }, fc.constant('toString')), fc.jsonValue()),
        ),
        note: mostly(fc.string({ unit: 'grapheme' })),
        inner: mostly(inner),
        list: mostly(fc.array(inner, { maxLength: 3 })),
      },
      { requiredKeys: ['id', 'level'] },
    );
    const surprised = fc.tuple(known, junk).map(([fields, surprise]) => ({ ...fields, surprise }));
    const body = fc.oneof({ arbitrary: known, weight: 9 }, { arbitrary: surprised, weight: 1 });
    let accepted = 0;
    fc.assert(
      fc.property(body, (sent) => {
        const plain = JSON.parse(JSON.stringify(sent)) as object;
        // Class-validator takes a list for an object and an object for a list.
        const { inner: object = {}, list = [] } = plain as { inner?: unknown; list?: unknown };
        if (Array.isArray(object) || !Array.isArray(list) || list.some(Array.isArray)) return;
        // Class-validator does not see this name, which `validate` refuses.
        if (JSON.stringify(plain).includes('"__proto__"')) return;
        const wanted = isValidForClassValidator(Outer, plain);
        if (wanted === undefined) return;
        expect(isAccepted(Outer, plain)).toBe(wanted);
        accepted += wanted ? 1 : 0;
      }),
      { numRuns: 3_000 * inject('runsFactor') },
    );
    expect(accepted).toBeGreaterThan(50);
  });

  it('property: any acquire with valid ids is accepted', () => {
    const id = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._:-]{0,60}$/);
    const body = fc.record(
      {
        acquireId: id,
        requestId: id,
        workerId: fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_:-]{0,60}$/),
        workerEpoch: fc.stringMatching(/^[a-z0-9]{1,32}$/),
        waitMs: fc.integer({ min: 0, max: 30_000 }),
      },
      { requiredKeys: ['acquireId', 'requestId', 'workerId', 'workerEpoch'] },
    );
    fc.assert(
      fc.property(body, (sent) => {
        const plain = JSON.parse(JSON.stringify(sent)) as object;
        expect(isAccepted(AcquireRequest, plain)).toBe(true);
        expect(isValidForClassValidator(AcquireRequest, plain)).toBe(true);
      }),
      { numRuns: 300 * inject('runsFactor') },
    );
  });
});
