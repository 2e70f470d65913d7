/** Converts the validation problems of a request to one error of the catalogue. */
import { ApiError } from '../errors.ts'
import { echoField, echoText } from './echo.ts'

export interface Problem {
  readonly keyword: string
  readonly instancePath: string
  readonly params: Record<string, unknown>
  readonly message?: string
}

const fieldOf = (path: string): string => path.slice(1).replaceAll('/', '.')

function valueAt(value: unknown, path: string): unknown {
  let at = value
  for (const part of path.split('/').slice(1)) at = (at as Record<string, unknown> | null | undefined)?.[part]
  return typeof at === 'bigint' ? at.toString() : at
}

interface Field {
  readonly 'x-expected'?: string
  readonly enum?: unknown
  readonly items?: Field
}
type Fields = Readonly<Record<string, Field>>

/** The parts of a schema that errors use. `x-hints` advises what to send instead of fields that are commonly sent or omitted by mistake. */
interface Described {
  readonly properties?: Fields
  readonly 'x-hints'?: Readonly<Record<string, string>>
}

/** Valid values of the field: its `x-expected` if it has one. */
function expectedOf({ keyword, instancePath, params, message }: Problem, fields: Fields): unknown {
  const [, name = '', item] = instancePath.split('/')
  const field = item === undefined ? fields[name] : fields[name]?.items
  return field?.['x-expected'] ?? field?.enum ?? (keyword === 'type' ? params.type : message)
}

/** The violated bound of a number, except a minimum of 0, which would not be a useful value. */
function nearestOf({ keyword, params }: Problem): { readonly nearest_valid?: unknown } {
  const isBound = keyword === 'minimum' || keyword === 'maximum'
  return isBound && params.limit !== 0 ? { nearest_valid: params.limit } : {}
}

/** The received value; a list is described by its length, because only its length is validated. */
const receivedOf = (value: unknown): unknown => (Array.isArray(value) ? `${value.length} items` : value)

const MAX_NAMES = 10

/** The error for the first problem, in this order: an unknown field, a missing field, an invalid value. */
export function validationError(problems: readonly Problem[], part: unknown, schema: unknown): ApiError {
  const { properties: fields = {}, 'x-hints': hints = {} } = (schema ?? {}) as Described
  const hintFor = (field: string) => (Object.hasOwn(hints, field) ? { hint: hints[field] } : {})
  const namesOf = (keyword: string, param: string): readonly string[] | undefined =>
    problems.find((problem) => problem.keyword === keyword)?.params[param] as string[] | undefined
  const unknown = namesOf('additionalProperties', 'additionalProperties')
  if (unknown) {
    const names = unknown.slice(0, MAX_NAMES)
    const field = names[0] as string
    const received = echoField(field, valueAt(part, `/${field}`))
    return new ApiError('UNKNOWN_FIELD', {
      ...{ field, expected: Object.keys(fields), received, ...hintFor(field) },
      unknown_fields: names.map((name) => echoText(name).slice(0, 100)),
    })
  }
  const missing = namesOf('required', 'requiredProperties')
  if (missing) {
    const field = missing[0] as string
    const expected = fields[field]?.['x-expected'] ?? fields[field]?.enum ?? 'a value'
    return new ApiError('MISSING_FIELD', { field, expected, missing_fields: missing, ...hintFor(field) })
  }
  const problem = problems[0]
  if (problem === undefined) return new ApiError('MALFORMED_REQUEST')
  const field = fieldOf(problem.instancePath) || 'body'
  return new ApiError('INVALID_FIELD', {
    field,
    expected: expectedOf(problem, fields),
    received: echoField(field, receivedOf(valueAt(part, problem.instancePath))),
    ...nearestOf(problem),
  })
}
