/**
 * Programming errors: an invariant of the code does not hold.
 * Invalid input and faults of other systems are never reported with these errors.
 */
export class InvariantError extends Error {
  override readonly name = 'InvariantError'
}

export function invariant(condition: boolean, rule: string): asserts condition {
  if (!condition) throw new InvariantError(`invariant violated: ${rule}`)
}

/** Error of a broken invariant. Hot paths use it to build the rule's text only after the check fails. */
export const violated = (rule: string): InvariantError => new InvariantError(`invariant violated: ${rule}`)

/** Default branch of an exhaustive switch. */
export function unreachable(value: never): never {
  throw new InvariantError(`unreachable: ${String(value)}`)
}
