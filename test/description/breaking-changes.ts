/**
 * Compares two versions of a description and lists what breaks programs that were written against the earlier one. Pure. New fields of answers
 * break nothing, and neither do new values of a list that is marked `x-extensible`.
 */
import { changedSchema, type Direction, type Documents, type Json, type Node } from './schema-changes.ts'

const nodeOf = (value: Json | undefined): Node => (value ?? {}) as Node

/** The object itself, or the component that it refers to. */
function target(document: Node, value: Json | undefined): Node {
  const { $ref } = nodeOf(value)
  if (typeof $ref !== 'string') return nodeOf(value)
  return nodeOf(
    $ref
      .slice('#/'.length)
      .split('/')
      .reduce<Json | undefined>((at, name) => nodeOf(at)[name], document),
  )
}

const bodyOf = (part: Node): Json | undefined => nodeOf(nodeOf(part.content)['application/json']).schema

interface Operation {
  readonly name: string
  readonly before: Node
  readonly after: Node
}

const parametersOf = (document: Node, operation: Node): Map<string, Node> =>
  new Map(
    ((operation.parameters ?? []) as readonly Json[]).map((each) => {
      const parameter = target(document, each)
      return [`${parameter.in} ${parameter.name}`, parameter]
    }),
  )

function changedParameters({ name, before, after }: Operation, documents: Documents): string[] {
  const [known, current] = [parametersOf(documents.before, before), parametersOf(documents.after, after)]
  const added = [...current].flatMap(([parameter, { required }]) =>
    required === true && known.get(parameter)?.required !== true
      ? [`${name} ${parameter}: is now required`]
      : [],
  )
  const changed = [...known].flatMap(([parameter, { schema }]) => {
    const now = current.get(parameter)
    if (now === undefined) return [`${name} ${parameter}: is no longer accepted`]
    return changedSchema(documents, 'request', `${name} ${parameter}`, { before: schema, after: now.schema })
  })
  return [...added, ...changed]
}

function changedBody({ name, before, after }: Operation, documents: Documents): string[] {
  const [known, current] = [nodeOf(before.requestBody), nodeOf(after.requestBody)]
  if (after.requestBody === undefined)
    return before.requestBody === undefined ? [] : [`${name} body: is no longer accepted`]
  const required =
    current.required === true && known.required !== true ? [`${name} body: is now required`] : []
  if (before.requestBody === undefined) return required
  const schemas = { before: bodyOf(known), after: bodyOf(current) }
  return [...required, ...changedSchema(documents, 'request', `${name} body`, schemas)]
}

function changedAnswers({ name, before, after }: Operation, documents: Documents): string[] {
  return Object.entries(nodeOf(before.responses)).flatMap(([status, value]) => {
    const at = `${name} ${status}`
    const now = nodeOf(after.responses)[status]
    if (now === undefined) return [`${at}: the status is removed`]
    const [known, current] = [target(documents.before, value), target(documents.after, now)]
    const headers = Object.keys(nodeOf(known.headers))
      .filter((header) => !Object.hasOwn(nodeOf(current.headers), header))
      .map((header) => `${at}: the header ${header} is removed`)
    const schemas = { before: bodyOf(known), after: bodyOf(current) }
    return [...headers, ...changedSchema(documents, 'answer', at, schemas)]
  })
}

const isPublic = ({ security }: Node): boolean =>
  ((security ?? []) as readonly Node[]).length === 0 ||
  (security as readonly Node[]).some((each) => Object.keys(each).length === 0)

function changedOperation(operation: Operation, documents: Documents): string[] {
  const isClosed = isPublic(operation.before) && !isPublic(operation.after)
  return [
    ...(isClosed ? [`${operation.name}: now requires a credential`] : []),
    ...changedParameters(operation, documents),
    ...changedBody(operation, documents),
    ...changedAnswers(operation, documents),
  ]
}

/** Of two OpenAPI documents. */
export function breakingChanges(before: Node, after: Node): string[] {
  return Object.entries(nodeOf(before.paths)).flatMap(([path, methods]) =>
    Object.entries(nodeOf(methods)).flatMap(([method, known]) => {
      const name = `${method.toUpperCase()} ${path}`
      const current = nodeOf(nodeOf(after.paths)[path])[method]
      if (current === undefined) return [`${name}: the operation is removed`]
      return changedOperation({ name, before: nodeOf(known), after: nodeOf(current) }, { before, after })
    }),
  )
}

/** The names of the messages that clients send. */
function requestsOf(document: Node): Set<string> {
  const operations = Object.values(nodeOf(document.operations)).map(nodeOf)
  const references = operations
    .filter(({ action }) => action === 'receive')
    .flatMap(({ messages }) => messages as readonly Node[])
  return new Set(references.map(({ $ref }) => String($ref).split('/').at(-1) as string))
}

/** Of two AsyncAPI documents. */
export function breakingMessageChanges(before: Node, after: Node): string[] {
  const requests = requestsOf(before)
  const messagesOf = (document: Node): Node => nodeOf(nodeOf(document.components).messages)
  return Object.entries(messagesOf(before)).flatMap(([name, known]) => {
    const current = messagesOf(after)[name]
    if (current === undefined) return [`${name}: the message is removed`]
    const direction: Direction = requests.has(name) ? 'request' : 'answer'
    const schemas = { before: nodeOf(known).payload, after: nodeOf(current).payload }
    return changedSchema({ before, after }, direction, name, schemas)
  })
}
