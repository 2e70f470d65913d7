/** Signs and sends funding updates and adjustments on a deployed exchange, as the keeper does. */
import { type ContractTransactionResponse, getBytes, type Wallet } from 'ethers'
import {
  type LeverageAdjustment,
  type MarginAdjustment,
  REMOVE_MODES,
  type RemoveMode,
} from '../../../domain/positions/adjustment.ts'
import {
  type Authorization,
  type Digest,
  hashLeverageAdjustment,
  hashMarginAdjustment,
} from '../../../domain/positions/adjustment-hash.ts'
import { ONE, type Price, type Quote, type Seconds } from '../../../domain/units.ts'
import { sessionFeedIdOf } from '../../../stack/deploy.ts'
import { addressOf, type Exchange, keccak, nextSecond, signReport } from '../../support/exchange.ts'
import { type ActionInput, actionOf, tick } from './risk.ts'

// ---------------------------------------------------------------------- funding

export interface FundingInput extends ActionInput {
  /** Wei per step and hour. */
  readonly rate: bigint
  /** By default one hour after `asOf`. */
  readonly validUntil?: number
  /** End of the running session, in milliseconds; for markets with sessions. */
  readonly sessionEnd?: number
  readonly sessionObservedAt?: number
}

export const HOUR = 3_600_000
const NO_REPORT = { price: 0n, observedAt: 0, proof: '0x' }

export async function setFunding(
  exchange: Exchange,
  input: FundingInput,
): Promise<ContractTransactionResponse> {
  const { actionId, asOf, report } = await actionOf(exchange, input)
  const validUntil = input.validUntil ?? asOf + HOUR
  const session = input.sessionEnd === undefined ? NO_REPORT : sessionReport(exchange, asOf, input)
  await tick(exchange)
  return exchange.trader.updateFunding(actionId, asOf, input.rate, validUntil, report, session)
}

function sessionReport(exchange: Exchange, asOf: number, input: FundingInput) {
  const price = BigInt(input.sessionEnd ?? 0)
  const observedAt = input.sessionObservedAt ?? asOf
  const feedId = sessionFeedIdOf(exchange.spec.marketId)
  return { price, observedAt, proof: signReport(exchange, { price: price as Price, observedAt, feedId }) }
}

// ---------------------------------------------------------------------- adjustments

export type Form = 'typed' | 'personal'

/** Input common to both adjustments. */
interface SignedInput {
  readonly by: Wallet
  readonly nonce?: bigint
  readonly deadline?: number
  /** Signs instead of the account. */
  readonly signer?: Wallet
  readonly form?: Form
  readonly asOf?: number
  /** Oracle price x 1e18; without it the last report used by the market applies. */
  readonly price?: bigint
  readonly observedAt?: number
  /** Alters the signature. */
  readonly signature?: (signature: string) => string
}

export interface MarginInput extends SignedInput {
  readonly amount: bigint
  readonly removeMode?: RemoveMode
  readonly minAmount?: bigint
}

export interface LeverageInput extends SignedInput {
  /** As a plain number, not scaled. */
  readonly leverage: number
  readonly maxMarginIn?: bigint
  readonly minMarginOut?: bigint
}

const nonces = { next: 1n }
const FAR_FUTURE = 4_000_000_000

export function sign(digest: Digest, signer: Wallet, form: Form = 'typed'): string {
  if (form === 'typed') return signer.signingKey.sign(digest).serialized
  return `${signer.signMessageSync(getBytes(digest))}01`
}

const authorizationOf = (input: SignedInput): Authorization => ({
  account: addressOf(input.by),
  nonce: input.nonce ?? nonces.next++,
  deadline: (input.deadline ?? FAR_FUTURE) as Seconds,
})

async function termsOf(exchange: Exchange, input: SignedInput) {
  const asOf = input.asOf ?? (await nextSecond(exchange)) * 1000
  if (input.price === undefined) return { asOf, report: NO_REPORT }
  const observedAt = input.observedAt ?? asOf
  const proof = signReport(exchange, { price: input.price as Price, observedAt })
  return { asOf, report: { price: input.price, observedAt, proof } }
}

const spoiled = (signature: string, input: SignedInput): string => input.signature?.(signature) ?? signature

/** Signed arguments of `adjustMargin`. */
export async function marginCall(exchange: Exchange, input: MarginInput) {
  const { asOf, report } = await termsOf(exchange, input)
  const adjustment: MarginAdjustment & Authorization = {
    ...authorizationOf(input),
    amount: input.amount as Quote,
    removeMode: input.removeMode ?? 'exact',
    minAmount: (input.minAmount ?? 0n) as Quote,
  }
  const digest = hashMarginAdjustment(adjustment, exchange.spec, keccak)
  const signature = spoiled(sign(digest, input.signer ?? input.by, input.form), input)
  const struct = { ...adjustment, removeMode: REMOVE_MODES.indexOf(adjustment.removeMode) }
  return { asOf, adjustment, struct, digest, signature, report }
}

/** Signed arguments of `adjustLeverage`. */
export async function leverageCall(exchange: Exchange, input: LeverageInput) {
  const { asOf, report } = await termsOf(exchange, input)
  const adjustment: LeverageAdjustment & Authorization = {
    ...authorizationOf(input),
    leverage: input.leverage,
    maxMarginIn: (input.maxMarginIn ?? 10n ** 30n) as Quote,
    minMarginOut: (input.minMarginOut ?? 0n) as Quote,
  }
  const digest = hashLeverageAdjustment(adjustment, exchange.spec, keccak)
  const signature = spoiled(sign(digest, input.signer ?? input.by, input.form), input)
  const struct = { ...adjustment, leverage: BigInt(adjustment.leverage) * ONE }
  return { asOf, adjustment, struct, digest, signature, report }
}

export async function adjustMargin(
  exchange: Exchange,
  input: MarginInput,
): Promise<ContractTransactionResponse> {
  const { asOf, struct, signature, report } = await marginCall(exchange, input)
  await tick(exchange)
  return exchange.trader.adjustMargin(asOf, struct, report, signature)
}

export async function adjustLeverage(
  exchange: Exchange,
  input: LeverageInput,
): Promise<ContractTransactionResponse> {
  const { asOf, struct, signature, report } = await leverageCall(exchange, input)
  await tick(exchange)
  return exchange.trader.adjustLeverage(asOf, struct, report, signature)
}
