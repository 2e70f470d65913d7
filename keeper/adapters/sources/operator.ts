/**
 * The final price of a market as its operators have stated it in the database. A statement holds until the next one, so its reading is
 * always fresh.
 */
import type { PriceSource } from '../../ports.ts'
import type { OperatorTerms } from '../../price-file.ts'

/** The newest statement; null if there is none. */
export type ReadStatement = () => Promise<bigint | null>

export function createOperatorSource(
  { name, maxAge, maxDeviation, pollMs }: OperatorTerms,
  read: ReadStatement,
): PriceSource {
  let price: bigint | null = null
  let fault = 'NOT_READ'
  const poll = (): Promise<void> =>
    read().then(
      (stated) => {
        price = stated
        fault = 'NOT_STATED'
      },
      () => {
        // Earlier statements stay valid.
        fault = 'UNREADABLE'
      },
    )
  void poll()
  const timer = setInterval(() => void poll(), pollMs)
  return {
    ...{ name, maxAge, maxDeviation },
    answer: (now) =>
      price === null ? { reading: null, fault } : { reading: { price, observedAt: now }, fault: null },
    stop: () => clearInterval(timer),
  }
}
