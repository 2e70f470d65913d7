/** Validates messages of the live feed against its description. */
import { Ajv, type ValidateFunction } from 'ajv'

export interface AsyncApi {
  readonly components: { readonly messages: Readonly<Record<string, { readonly payload: object }>> }
}

type Schema = Record<string, unknown>

/** The schema without properties that it does not name, so that an undescribed field of a message is an error. */
function closedSchema(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closedSchema)
  if (typeof schema !== 'object' || schema === null) return schema
  const entries = Object.entries(schema as Schema).map(([key, value]) => [key, closedSchema(value)])
  const copy = Object.fromEntries(entries) as Schema
  const isClosed = 'properties' in copy && copy.type !== undefined && !('additionalProperties' in copy)
  return isClosed ? { ...copy, additionalProperties: false } : copy
}

type Constants = { readonly [Name in 'type' | 'op']?: { readonly enum?: readonly string[] } }

/** Returns a function that lists what is wrong with a message. */
export function messageValidator(
  document: AsyncApi,
): (message: Record<string, unknown>) => readonly string[] {
  const ajv = new Ajv({ strict: false, allErrors: true, allowUnionTypes: true, validateFormats: false })
  const compiled = Object.entries(document.components.messages).map(([name, { payload }]) => {
    const { type, op } = (payload as { properties: Constants }).properties
    const check: ValidateFunction = ajv.compile(closedSchema(payload) as object)
    return { name, type: type?.enum?.[0], op: op?.enum?.[0], check }
  })
  return (message) => {
    const candidates = compiled.filter(
      ({ type, op }) => type === message.type && (op === undefined || op === message.op),
    )
    if (candidates.length === 0) return [`no description of ${JSON.stringify(message).slice(0, 200)}`]
    const problems = candidates.map(({ name, check }) =>
      check(message)
        ? null
        : `${name}: ${ajv.errorsText(check.errors)} in ${JSON.stringify(message).slice(0, 500)}`,
    )
    return problems.includes(null) ? [] : (problems as string[])
  }
}
