/**
 * Errors of programmers: an invariant of the code does not hold. Never bad input, never a fault of another
 * system.
 */
export class InvariantError extends Error {
  override readonly name = 'InvariantError'
}

export function invariant(condition: boolean, rule: string): asserts condition {
  if (!condition) throw new InvariantError(`invariant violated: ${rule}`)
}

/** The error of a broken invariant, for code that runs too often to build the text of every rule that holds. */
export const violated = (rule: string): InvariantError => new InvariantError(`invariant violated: ${rule}`)

/** The default branch of an exhaustive switch. */
export function unreachable(value: never): never {
  throw new InvariantError(`unreachable: ${String(value)}`)
}
