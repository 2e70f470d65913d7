/** The fee of a transaction: from the chain's head, and raised for a replacement. */
import { maxOf } from '../../domain/units.ts'
import type { Fee, Head } from '../ports.ts'

export interface FeePolicy {
  readonly feeCap: bigint
  readonly priorityFee: bigint
}

/** Twice the base fee plus a tip: the base fee may double while a transaction waits. */
export function feeAt({ baseFee }: Head, { priorityFee, feeCap }: FeePolicy): Fee {
  const wanted = 2n * baseFee + priorityFee
  return { maxFeePerGas: wanted < feeCap ? wanted : feeCap, maxPriorityFeePerGas: priorityFee }
}

/** Nodes accept a replacement if both fees are at least 10 % higher; 12.5 % leaves room for rounding. */
export function raiseFee(old: Fee, now: Fee): Fee {
  const eighthMore = (fee: bigint): bigint => fee + fee / 8n + 1n
  return {
    maxFeePerGas: maxOf(eighthMore(old.maxFeePerGas), now.maxFeePerGas),
    maxPriorityFeePerGas: maxOf(eighthMore(old.maxPriorityFeePerGas), now.maxPriorityFeePerGas),
  }
}
