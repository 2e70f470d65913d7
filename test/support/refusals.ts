/** Expectations that a settlement reverts with a given custom error and arguments. */
import { expect } from 'chai'
import type { BaseContract } from 'ethers'
import { encodeSettleBatch } from '../../domain/settlement/settlement-codec.ts'
import { nameOfError } from './errors.ts'
import { buildPart, type Exchange, type PartInput, send } from './exchange.ts'

export interface Refusal {
  readonly error: string
  readonly args?: readonly unknown[]
  /** The contract that declares the error; by default the market. */
  readonly contract?: BaseContract
}

export async function expectRefused(exchange: Exchange, bytes: Uint8Array, refusal: Refusal): Promise<void> {
  const { error, args, contract } = refusal
  const assertion = expect(send(exchange, bytes)).to.be.revertedWithCustomError(
    contract ?? exchange.trader,
    error,
  )
  await (args ? assertion.withArgs(...args) : assertion)
}

/** Builds the part, changes its bytes with `change`, and expects the revert. */
export async function expectPartRefused(
  exchange: Exchange,
  input: PartInput,
  refusal: Refusal,
  change: (bytes: Uint8Array) => Uint8Array = (bytes) => bytes,
): Promise<void> {
  const part = await buildPart(exchange, input)
  await expectRefused(exchange, change(encodeSettleBatch(part, exchange.spec)), refusal)
}

/**
 * Expects the call to fail with a message that matches; for cases in which more than one error is correct.
 */
export async function expectRejected(
  call: Promise<unknown>,
  message: RegExp,
  what = 'the call',
): Promise<void> {
  const failure = await call.then(
    () => null,
    (error: unknown) => error as Error,
  )
  expect(failure, `${what} fails`).not.to.equal(null)
  expect(nameOfError(failure) ?? failure?.message, what).to.match(message)
}

/** A copy of the bytes with some of them replaced. */
export function withBytes(bytes: Uint8Array, at: number, ...values: readonly number[]): Uint8Array {
  const changed = bytes.slice()
  changed.set(values, at)
  return changed
}

/** A copy of the bytes with one bit inverted; bits count from the high end of each byte. */
export function withBitFlipped(bytes: Uint8Array, bit: number): Uint8Array {
  const at = bit >> 3
  return withBytes(bytes, at, (bytes[at] as number) ^ (0x80 >> (bit & 7)))
}
