/** What breaks clients when a schema of a request or an answer changes. */

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json }
export type Node = { readonly [name: string]: Json }

/** Clients send requests, which may accept more than before, and read answers, which may promise more than before. */
export type Direction = 'request' | 'answer'

export interface Documents {
  readonly before: Node
  readonly after: Node
}

interface Schemas {
  readonly before: Node
  readonly after: Node
}

interface Place extends Schemas {
  readonly at: string
  readonly direction: Direction
  /** Compares schemas below this one. */
  readonly below: (at: string, before: Json | undefined, after: Json | undefined) => string[]
}

const listOf = (value: Json | undefined): readonly Json[] | null => (Array.isArray(value) ? value : null)

/** Null: of any type. An integer is a number. */
const typesOf = ({ type }: Node): readonly Json[] | null => (type === undefined ? null : [type].flat())

const missingIn = (wide: readonly Json[], values: readonly Json[]): Json[] =>
  values.filter((value) => !wide.includes(value) && !(value === 'integer' && wide.includes('number')))

function changedTypes({ at, before, after, direction }: Place): string[] {
  const [known, current] = [typesOf(before), typesOf(after)]
  if (direction === 'request') {
    if (current === null) return []
    const removed = known === null ? ['any'] : missingIn(current, known)
    return removed.map((type) => `${at}: no longer accepts the type ${type}`)
  }
  if (known === null) return []
  const added = current === null ? ['any'] : missingIn(known, current)
  return added.map((type) => `${at}: can now be of the type ${type}`)
}

const wordsOf = ({ enum: words, const: constant }: Node): readonly Json[] | null =>
  listOf(words) ?? (constant === undefined ? null : [constant])

function changedWords({ at, before, after, direction }: Place): string[] {
  const [known, current] = [wordsOf(before), wordsOf(after)]
  if (direction === 'request') {
    if (current === null) return []
    if (known === null) return [`${at}: accepts only listed values now`]
    return missingIn(current, known).map((word) => `${at}: no longer accepts ${JSON.stringify(word)}`)
  }
  if (known === null || before['x-extensible'] === true) return []
  if (current === null) return [`${at}: the list of values is removed`]
  return missingIn(known, current).map((word) => `${at}: can now be ${JSON.stringify(word)}`)
}

const LOWER = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems']
const UPPER = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems']

/** Bounds and patterns of requests; of answers they only document. */
function changedBounds({ at, before, after, direction }: Place): string[] {
  if (direction === 'answer')
    return before.format === after.format ? [] : [`${at}: format is ${after.format ?? 'none'} now`]
  const isTighter = (name: string): boolean => {
    const [known, current] = [before[name], after[name]] as (number | undefined)[]
    if (current === undefined) return false
    return known === undefined || (LOWER.includes(name) ? current > known : current < known)
  }
  const tighter = [...LOWER, ...UPPER].filter(isTighter).map((name) => `${at}: ${name} is ${after[name]} now`)
  const isOther = after.pattern !== undefined && after.pattern !== before.pattern
  return isOther ? [...tighter, `${at}: the pattern is ${after.pattern} now`] : tighter
}

function changedFields({ at, before, after, direction, below }: Place): string[] {
  const [known, current] = [before.properties ?? {}, after.properties ?? {}] as Node[] as [Node, Node]
  const [needed, needs] = [listOf(before.required) ?? [], listOf(after.required) ?? []]
  const isClosed = after.additionalProperties === false
  const required =
    direction === 'request'
      ? missingIn(needed, needs).map((name) => `${at}.${name}: is now required`)
      : missingIn(needs, needed)
          .filter((name) => Object.hasOwn(current, String(name)))
          .map((name) => `${at}.${name}: can now be absent`)
  const fields = Object.entries(known).flatMap(([name, schema]) => {
    if (Object.hasOwn(current, name)) return below(`${at}.${name}`, schema, current[name])
    if (direction === 'answer') return [`${at}.${name}: the field is removed`]
    return isClosed ? [`${at}.${name}: the field is no longer accepted`] : []
  })
  return [...required, ...fields]
}

/** Alternatives are compared in their order: those that follow are added ones. */
function changedAlternatives(name: string, { at, before, after, direction, below }: Place): string[] {
  const [known, current] = [listOf(before[name]), listOf(after[name])]
  if (known === null && current === null) return []
  if (known === null || current === null) return [`${at}: ${name} is ${known ? 'removed' : 'added'}`]
  const isLonger = current.length > known.length
  const isBroken = current.length !== known.length && isLonger === (direction === 'answer')
  const count = `${at}: has ${current.length} alternatives instead of ${known.length}`
  const shared = Math.min(known.length, current.length)
  return [
    ...(isBroken ? [count] : []),
    ...known
      .slice(0, shared)
      .flatMap((schema, index) => below(`${at} (${name} ${index + 1})`, schema, current[index])),
  ]
}

function changedNode(place: Place): string[] {
  const { at, before, after, below } = place
  const items = before.items === undefined ? [] : below(`${at}[]`, before.items, after.items ?? {})
  return [
    ...changedTypes(place),
    ...changedWords(place),
    ...changedBounds(place),
    ...changedFields(place),
    ...items,
    ...['anyOf', 'oneOf', 'allOf'].flatMap((name) => changedAlternatives(name, place)),
  ]
}

function resolved(document: Node, value: Json | undefined): Node {
  const { $ref, ...others } = (value ?? {}) as Node
  if (typeof $ref !== 'string') return others
  const found = $ref
    .slice('#/'.length)
    .split('/')
    .reduce<Json>((at, name) => (at as Node)[name] as Json, document)
  return { ...resolved(document, found), ...others }
}

/** What breaks clients if `before` becomes `after`; each entry begins with its place. */
export function changedSchema(
  documents: Documents,
  direction: Direction,
  place: string,
  schemas: { readonly before: Json | undefined; readonly after: Json | undefined },
): string[] {
  const open: string[] = []
  const below: Place['below'] = (at, before, after) => {
    const pair = `${(before as Node | undefined)?.$ref} ${(after as Node | undefined)?.$ref}`
    // A schema that contains itself is compared once.
    if (!pair.includes('undefined') && open.includes(pair)) return []
    open.push(pair)
    const known = resolved(documents.before, before)
    const current = resolved(documents.after, after)
    const changes = changedNode({ at, direction, before: known, after: current, below })
    open.pop()
    return changes
  }
  return below(place, schemas.before, schemas.after)
}
