/** Answers to commands with several orders that are accepted or refused individually. */
import { ClearbatchError } from './errors.ts'
import { mostCertain } from './outcomes.ts'
import type { BatchItemError } from './responses.ts'

type Accepted<Answer extends { readonly results: readonly object[] }> = Omit<Answer, 'results'> & {
  readonly results: readonly Exclude<Answer['results'][number], BatchItemError>[]
}

export type Checked<Answer extends { readonly results: readonly object[] }> = Answer & {
  /** Returns the answer if every item was accepted. Otherwise throws the first refusal; `details.rejected` lists all. */
  orThrow(): Accepted<Answer>
}

/** `orThrow` is not enumerable, so that the answer still equals its JSON. */
export function checked<Answer extends { readonly results: readonly object[] }>(
  answer: Answer,
): Checked<Answer> {
  const result = { ...answer }
  const orThrow = (): Accepted<Answer> => {
    const rejected = answer.results.flatMap((result, index) =>
      'error' in result ? [{ index, ...(result as BatchItemError).error }] : [],
    )
    const [first] = rejected
    if (first === undefined) return result as unknown as Accepted<Answer>
    const accepted = answer.results.length - rejected.length
    throw new ClearbatchError(
      `item ${first.index} of ${answer.results.length} was refused (${rejected.length} in all): ${first.message}`,
      {
        status: 200,
        code: first.details.code,
        outcome: accepted > 0 ? 'placed' : mostCertain(rejected.map(({ details }) => details.outcome)),
        retryable: false,
        details: { ...first.details, index: first.index, accepted, rejected },
      },
    )
  }
  return Object.defineProperty(result, 'orThrow', { value: orThrow }) as Checked<Answer>
}
