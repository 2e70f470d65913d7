/**
 * Gas of a transaction in two schedules. The receipt of the test chain follows Ethereum's (Prague). Chains 4326 and 6343
 * charge it too ("compute"), plus a storage price: for the transaction itself, each byte of calldata and each byte and
 * topic of its logs. Storage slots and accounts cost more only in crowded buckets of their state; these figures are for
 * buckets that are not (multiplier 1).
 */
import { type ContractTransactionResponse, getBytes, type Log } from 'ethers'

export interface Gas {
  /** Gas that the receipt of a chain with Ethereum's schedule shows. */
  readonly receipt: number
  /** Gas that 4326 and 6343 charge. */
  readonly charged: number
}

/** Name of a measurement => its gas. */
export type GasTable = Record<string, Gas>

/** Storage price on top of the receipt, and the minimum of a transaction, which includes Ethereum's minimum. */
export const STORAGE_PRICE = {
  transaction: 39_000,
  zeroByte: 40,
  nonzeroByte: 160,
  topic: 3_750,
  logByte: 80,
} as const
const MINIMUM = { transaction: 60_000, zeroByte: 110, nonzeroByte: 440 } as const

/** What a byte adds to the receipt: calldata and log. */
export const COMPUTE_PRICE = { zeroByte: 4, nonzeroByte: 16, logByte: 8 } as const

interface ByteCounts {
  readonly zero: number
  readonly nonzero: number
}

export function countBytes(data: Uint8Array): ByteCounts {
  const nonzero = data.filter((byte) => byte !== 0).length
  return { zero: data.length - nonzero, nonzero }
}

const priceOf = (
  { zero, nonzero }: ByteCounts,
  { zeroByte, nonzeroByte }: { readonly zeroByte: number; readonly nonzeroByte: number },
): number => zero * zeroByte + nonzero * nonzeroByte

const logPrice = ({ topics, data }: Pick<Log, 'topics' | 'data'>): number =>
  topics.length * STORAGE_PRICE.topic + getBytes(data).length * STORAGE_PRICE.logByte

/** Gas that 4326 and 6343 charge for a transaction with this calldata, receipt gas and logs. */
export function chargedGas(
  calldata: Uint8Array,
  receipt: number,
  logs: readonly Pick<Log, 'topics' | 'data'>[],
): number {
  const bytes = countBytes(calldata)
  const stored = logs.reduce((sum, log) => sum + logPrice(log), 0)
  const full = receipt + STORAGE_PRICE.transaction + priceOf(bytes, STORAGE_PRICE) + stored
  return Math.max(full, MINIMUM.transaction + priceOf(bytes, MINIMUM))
}

type Sent = Promise<ContractTransactionResponse> | ContractTransactionResponse

/** Gas of a transaction; with `shares`, per order or account. */
export async function gasOf(sent: Sent, shares = 1): Promise<Gas> {
  const transaction = await sent
  const receipt = await transaction.wait()
  if (receipt === null) throw new Error(`transaction ${transaction.hash} has no receipt`)
  const used = Number(receipt.gasUsed)
  return perShare(
    { receipt: used, charged: chargedGas(getBytes(transaction.data), used, receipt.logs) },
    shares,
  )
}

export const perShare = ({ receipt, charged }: Gas, shares: number): Gas => ({
  receipt: Math.round(receipt / shares),
  charged: Math.round(charged / shares),
})

export const gasAbove = (gas: Gas, base: Gas): Gas => ({
  receipt: gas.receipt - base.receipt,
  charged: gas.charged - base.charged,
})
