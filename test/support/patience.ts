/** How much longer than on a quiet machine anything may take before a test fails: a bound finds what hangs, never what is slow. */
import { type WaitOptions, waitFor as waitOnce } from '../../client/wait-for.ts'

export const PATIENCE = 5

const DEFAULT_BUDGET_MS = 15_000

/** Polls a read until a condition holds; `budgetMs` is for a quiet machine. */
export const waitFor = <Value>(
  read: () => Promise<Value>,
  done: (value: Value) => boolean,
  { budgetMs = DEFAULT_BUDGET_MS, ...options }: WaitOptions = {},
): Promise<Value> => waitOnce(read, done, { ...options, budgetMs: budgetMs * PATIENCE })
