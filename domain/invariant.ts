/** Programmer errors only: a broken promise inside the code, never bad input and never a fault of the outside world. */
export class InvariantError extends Error {
  override readonly name = 'InvariantError'
}

export function invariant(condition: boolean, promise: string): asserts condition {
  if (!condition) throw new InvariantError(promise)
}

/** The default branch of an exhaustive switch. */
export function unreachable(value: never): never {
  throw new InvariantError(`unreachable: ${String(value)}`)
}
