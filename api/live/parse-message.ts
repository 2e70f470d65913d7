/** Parses and validates what a client sends: as strict as REST, with the same errors. */
import { ApiError } from '../errors.ts'
import { parseJson } from '../http/json.ts'
import { type Problem, validationError } from '../http/problems.ts'
import { compileValidator } from '../http/validation.ts'
import { BATCH_MESSAGE_LIMIT, MESSAGE_LIMIT, type Message, OPERATIONS, OPS, type Op } from './schema.ts'

type Validate = (value: unknown) => { readonly error?: readonly Problem[] } | boolean

interface Part {
  readonly schema: unknown
  readonly validate: Validate
}

const part = (schema: object): Part => ({
  schema,
  validate: compileValidator({ schema, method: 'POST', url: '/v0/ws', httpPart: 'body' }) as Validate,
})

/** The message around a body, and the body, which has the errors of its request over REST. */
interface Parts {
  readonly envelope: Part
  readonly body: Part | null
}

function partsOf(op: Op): Parts {
  const schema = OPERATIONS[op]
  const { body } = schema.properties as { readonly body?: object }
  if (body === undefined) return { envelope: part(schema), body: null }
  const anyObject = { type: 'object', 'x-expected': 'an object' }
  const properties = { ...schema.properties, body: anyObject }
  return { envelope: part({ ...schema, properties }), body: part(body) }
}

const PARTS = new Map<string, Parts>(OPS.map((op) => [op, partsOf(op)]))

function check({ schema, validate }: Part, value: unknown): void {
  const checked = validate(value)
  const problems = typeof checked === 'object' ? checked.error : undefined
  if (problems) throw validationError(problems, value, schema)
}

export type Parsed =
  | { readonly id: string | number; readonly op: Op; readonly message: Message }
  | { readonly id: string | number | null; readonly op: Op | null; readonly error: ApiError }

const isId = (id: unknown): id is string | number =>
  typeof id === 'string' ? /^[\x20-\x7e]{1,100}$/.test(id) : Number.isSafeInteger(id)

function readMessage(text: string): Record<string, unknown> {
  const value = parseJson(text)
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>
  throw new ApiError('INVALID_JSON', { field: 'body', expected: 'a JSON object' })
}

function validate(message: Record<string, unknown>, bytes: number): Op {
  const { op } = message
  if (op === undefined)
    throw new ApiError('MISSING_FIELD', { field: 'op', expected: OPS, missing_fields: ['op'] })
  const parts = typeof op === 'string' ? PARTS.get(op) : undefined
  if (parts === undefined) throw new ApiError('INVALID_FIELD', { field: 'op', expected: OPS, received: op })
  const limit = (op as string).endsWith('_batch') ? BATCH_MESSAGE_LIMIT : MESSAGE_LIMIT
  if (bytes > limit)
    throw new ApiError('BODY_TOO_LARGE', {
      field: 'body',
      expected: `at most ${limit} bytes`,
      received: `${bytes} bytes`,
    })
  check(parts.envelope, message)
  if (parts.body !== null) check(parts.body, message.body)
  return op as Op
}

/** An error carries what could be read of the message. */
export function parseMessage(text: string): Parsed {
  let message: Record<string, unknown> = {}
  try {
    message = readMessage(text)
    const op = validate(message, Buffer.byteLength(text))
    return { id: message.id as string | number, op, message: message as unknown as Message }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const { id, op } = message
    return { id: isId(id) ? id : null, op: PARTS.has(op as string) ? (op as Op) : null, error }
  }
}

/** A message that is not read. */
export const UNREAD: Parsed = {
  ...{ id: null, op: null },
  error: new ApiError('INVALID_JSON', {
    ...{ field: 'body', expected: 'a text message with a JSON object', received: 'a binary message' },
  }),
}
