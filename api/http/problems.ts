/** What a schema has against a request, as an error of the catalogue. */
import { ApiError } from '../errors.ts'

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

/** What a refusal uses of a schema. `x-hints`: what to do instead, for fields that are sent or left out by a usual mistake. */
interface Described {
  readonly properties?: Fields
  readonly 'x-hints'?: Readonly<Record<string, string>>
}

/** What would be valid: in the field's own words where it has some. */
function expectedOf({ keyword, instancePath, params, message }: Problem, fields: Fields): unknown {
  const [, name = '', item] = instancePath.split('/')
  const field = item === undefined ? fields[name] : fields[name]?.items
  return field?.['x-expected'] ?? field?.enum ?? (keyword === 'type' ? params.type : message)
}

/** The bound that a number lies beyond. Not 0: that seldom says the least, but that there is none. */
function nearestOf({ keyword, params }: Problem): { readonly nearest_valid?: unknown } {
  const isBound = keyword === 'minimum' || keyword === 'maximum'
  return isBound && params.limit !== 0 ? { nearest_valid: params.limit } : {}
}

/** A list by its length: that is what can be wrong with it. */
const told = (value: unknown): unknown => (Array.isArray(value) ? `${value.length} items` : value)

const TOLD_NAMES = 10

/** The first problem, most telling kind first: an unknown field, a missing one, then a value. */
export function validationError(problems: readonly Problem[], part: unknown, schema: unknown): ApiError {
  const { properties: fields = {}, 'x-hints': hints = {} } = (schema ?? {}) as Described
  const hintFor = (field: string) => (Object.hasOwn(hints, field) ? { hint: hints[field] } : {})
  const namesOf = (keyword: string, param: string): readonly string[] | undefined =>
    problems.find((problem) => problem.keyword === keyword)?.params[param] as string[] | undefined
  const unknown = namesOf('additionalProperties', 'additionalProperties')
  if (unknown) {
    const names = unknown.slice(0, TOLD_NAMES)
    const field = names[0] as string
    const received = valueAt(part, `/${field}`)
    return new ApiError('UNKNOWN_FIELD', {
      ...{ field, expected: Object.keys(fields), received, ...hintFor(field) },
      unknown_fields: names.map((name) => name.slice(0, 100)),
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
  return new ApiError('INVALID_FIELD', {
    field: fieldOf(problem.instancePath) || 'body',
    expected: expectedOf(problem, fields),
    received: told(valueAt(part, problem.instancePath)),
    ...nearestOf(problem),
  })
}
