/** Building blocks of all schemas. A schema is written once; it validates, types, serializes and documents. */
import Type, {
  type TInteger,
  type TNumber,
  type TObject,
  type TSchema,
  type TString,
  type TUnsafe,
} from 'typebox'
import { OUTCOMES } from '../catalogue-entry.ts'
import { TIME_EXPECTED } from './times.ts'

/** An object without other properties. */
export const closed = <Properties extends Record<string, TSchema>>(
  properties: Properties,
  options: Record<string, unknown> = {},
) => Type.Object(properties, { ...options, additionalProperties: false })

/** An object that the OpenAPI description defines once, under this name. */
export const named = <Properties extends Record<string, TSchema>>(
  title: string,
  properties: Properties,
  options: Record<string, unknown> = {},
) => Type.Object(properties, { ...options, title })

/** As `named`, without other properties. */
export const namedInput = <Properties extends Record<string, TSchema>>(
  title: string,
  properties: Properties,
  options: Record<string, unknown> = {},
) => closed(properties, { ...options, title })

/** A string of a closed list. */
export const words = <const Word extends string>(list: readonly Word[], description: string): TUnsafe<Word> =>
  Type.Unsafe<Word>({ type: 'string', enum: [...list], description })

/** A value or null, in the short form that the serializer handles fast. */
export const nullable = <Schema extends TInteger | TNumber | TString>(
  schema: Schema,
): TUnsafe<Type.Static<Schema> | null> =>
  Type.Unsafe<Type.Static<Schema> | null>({ ...schema, type: [(schema as { type: string }).type, 'null'] })

/** One of these words or null. */
export const maybeWords = <const Word extends string>(
  list: readonly Word[],
  description: string,
): TUnsafe<Word | null> =>
  Type.Unsafe<Word | null>({ type: ['string', 'null'], enum: [...list, null], description })

/** An object or null. */
export const nullableObject = <Schema extends TObject>(
  schema: Schema,
  description: string,
): TUnsafe<Type.Static<Schema> | null> =>
  Type.Unsafe<Type.Static<Schema> | null>({ ...schema, type: ['object', 'null'], description })

type Twice<Name extends string, Value extends TSchema, Raw extends TSchema> = { [Key in Name]: Value } & {
  [Key in `${Name}_e18_raw`]: Raw
}

/** An amount in an answer, twice: `name` as a number and `name_e18_raw` exact. Spread it into an object. */
export const amountOf = <Name extends string>(
  name: Name,
  description: string,
): Twice<Name, TNumber, TString> =>
  ({
    [name]: Type.Number({ description }),
    [`${name}_e18_raw`]: Type.String({ description: `${description} Times 1e18, exact.` }),
  }) as Twice<Name, TNumber, TString>

export const maybeAmountOf = <Name extends string>(
  name: Name,
  description: string,
): Twice<Name, TUnsafe<number | null>, TUnsafe<string | null>> =>
  ({
    [name]: nullable(Type.Number({ description })),
    [`${name}_e18_raw`]: nullable(Type.String({ description: `${description} Times 1e18, exact.` })),
  }) as Twice<Name, TUnsafe<number | null>, TUnsafe<string | null>>

/** The text for `expected` in errors of this field, instead of one derived from the schema. Spread it into the field's schema. */
export const expects = (what: string): { readonly 'x-expected': string } => ({ 'x-expected': what })

/**
 * Documents the values of a field without validating them: for request fields with an error code of their own, and
 * answer fields serialized as plain strings. Spread into the schema.
 */
export const documentedAs = (
  list: readonly (string | null)[],
): { readonly 'x-enum': readonly (string | null)[] } => ({
  'x-enum': list,
})

/** A decimal amount in a request: a JSON number or a decimal string, not negative. */
export const decimalInput = (description: string): TUnsafe<number | string> =>
  Type.Unsafe<number | string>({
    type: ['number', 'string'],
    minimum: 0,
    pattern: '^\\d{1,40}(\\.\\d{1,18})?$',
    ...expects('a decimal from 0 with up to 18 decimals, as a number or a string'),
    description: `${description} A number or a decimal string.`,
  })

/** As `decimalInput`, of either sign. */
export const signedDecimalInput = (description: string): TUnsafe<number | string> =>
  Type.Unsafe<number | string>({
    type: ['number', 'string'],
    pattern: '^-?\\d{1,40}(\\.\\d{1,18})?$',
    ...expects('a decimal with up to 18 decimals, as a number or a string'),
    description: `${description} A number or a decimal string.`,
  })

/** A whole number in a request: a JSON number or a string of digits. The domain checks its range. */
export const wholeInput = (description: string): TUnsafe<number | string> =>
  Type.Unsafe<number | string>({
    type: ['number', 'string'],
    pattern: '^\\d{1,15}$',
    ...expects('a whole number, as a number or a string of up to 15 digits'),
    description: `${description} A number or a string of digits.`,
  })

/** The number of a market in a body: a JSON number or a string of digits. */
export const marketInput = (description: string): TUnsafe<number | string> =>
  Type.Unsafe<number | string>({
    type: ['integer', 'string'],
    minimum: 1,
    pattern: '^[1-9]\\d{0,14}$',
    ...expects('a whole number from 1'),
    description: `${description} A number or a string of digits.`,
  })

export const MAX_INTEGER = Number.MAX_SAFE_INTEGER
export const PositiveInteger = (description: string) =>
  Type.Integer({ minimum: 1, maximum: MAX_INTEGER, ...expects('a whole number from 1'), description })

/** A count from 1 to `maximum`. */
export const countInput = (maximum: number, fallback: number, description = '') =>
  Type.Integer({
    ...{ minimum: 1, maximum, default: fallback, description },
    ...expects(`a whole number from 1 to ${maximum}`),
  })

export const UserIdParams = closed({ user_id: PositiveInteger("The caller's own id.") })

export const Side = words(['LONG', 'SHORT'], 'LONG buys, SHORT sells.')
export const Time = (description: string) => Type.String({ format: 'date-time', description })

/** A time in a query, in the form of answers; `parseTime` reads it. */
export const timeInput = (description: string) =>
  Type.String({
    pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d{1,3})?Z$',
    ...expects(TIME_EXPECTED),
    description,
  })

/** The query fields of a list that `timeRange` reads. `what`: the items, such as "fills matched". */
export const rangeQuery = (what: string) => ({
  from: Type.Optional(timeInput(`Only ${what} at this time or later.`)),
  to: Type.Optional(timeInput(`Only ${what} before this time.`)),
})

export const ReadAfter = named(
  'ReadAfter',
  { shard_id: Type.String(), shard_seq: Type.String() },
  { description: 'Bookmark of this write: a read that carries it shows at least this write.' },
)

/** Query fields of a read that can wait for a write to be projected. */
export const bookmarkQuery = {
  read_after_shard_id: Type.Optional(Type.String({ description: '`read_after.shard_id` of a write.' })),
  read_after_shard_seq: Type.Optional(
    Type.String({ description: '`read_after.shard_seq` of the same write.' }),
  ),
}

export const BookmarkQuery = closed(bookmarkQuery)

export const MAX_PAGE = 1000
export const pageQuery = {
  limit: Type.Optional(countInput(MAX_PAGE, 100, 'Items per page.')),
  cursor: Type.Optional(Type.String({ description: '`next_cursor` of the page before.' })),
}
export const NextCursor = nullable(
  Type.String({ description: 'Pass as `cursor` for the next page; null at the end.' }),
)

/** Clients are to expect further words of an answer: adding one breaks none of them. */
export const extensible = { 'x-extensible': true } as const

/** A code of the catalogue. The description lists them (`http/components.ts`); a list in every serializer would slow the start. */
export const errorCode = Type.String({
  title: 'ErrorCode',
  description: 'Stable code of the error for programs.',
})

const errorFields = {
  code: errorCode,
  field: Type.Optional(Type.String({ description: 'The field that caused the error.' })),
  retryable: Type.Boolean({ description: 'Whether the same request may succeed later.' }),
  request_id: Type.String(),
}
const outcome = words(
  OUTCOMES,
  'Whether the command took effect: not_placed, placed, or unknown. not_read: the request was refused before its command was read; this ' +
    'attempt changed nothing, and an earlier attempt at the same command may have been executed.',
)

const errorOf = <Details extends Record<string, TSchema>>(
  title: string,
  details: Details,
  description: string,
) =>
  named(
    title,
    { message: Type.String(), details: Type.Object(details, { additionalProperties: true }) },
    { description },
  )

export const ErrorSchema = errorOf('Error', errorFields, 'An error of a read.')
export const CommandErrorSchema = errorOf(
  'CommandError',
  { ...errorFields, outcome },
  'An error of a command.',
)
