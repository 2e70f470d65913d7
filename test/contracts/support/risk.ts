/** Sends the actions of backstop, deleveraging and wind-down to a deployed exchange. */
import type { ContractTransactionResponse, Wallet } from 'ethers'
import type { Address, Price } from '../../../domain/units.ts'
import { feedIdOf, finalFeedIdOf } from '../../../stack/deploy.ts'
import { Backstop__factory } from '../../../typechain-types/factories/Backstop__factory.ts'
import {
  addressOf,
  type Exchange,
  nextSecond,
  type ReportInput,
  settle,
  signReport,
} from '../../support/exchange.ts'

export interface ActionInput {
  readonly actionId?: number
  readonly asOf?: number
  /** Oracle price x 1e18. */
  readonly price: bigint
  readonly observedAt?: number
  readonly signers?: ReportInput['signers']
  readonly feedId?: string
}

/** Report, `actionId` and `asOf` of an action, for the second in which it will be mined. */
export async function actionOf(exchange: Exchange, input: ActionInput) {
  const clock = await exchange.trader.clock()
  const asOf = input.asOf ?? (await nextSecond(exchange)) * 1000
  const observedAt = input.observedAt ?? asOf
  const { price, signers, feedId } = input
  const proof = signReport(exchange, {
    price: price as Price,
    observedAt,
    ...(signers && { signers }),
    ...(feedId && { feedId }),
  })
  return {
    actionId: input.actionId ?? Number(clock.actionId) + 1,
    asOf,
    report: { price, observedAt, proof },
  }
}

/** The next block is mined one second after the latest. */
export async function tick(exchange: Exchange): Promise<void> {
  await exchange.connection.networkHelpers.time.setNextBlockTimestamp(await nextSecond(exchange))
}

export async function inherit(
  exchange: Exchange,
  account: { readonly address: string },
  input: ActionInput,
): Promise<ContractTransactionResponse> {
  const { actionId, asOf, report } = await actionOf(exchange, input)
  await tick(exchange)
  return exchange.trader.inheritPosition(actionId, asOf, account.address, report)
}

export interface RequestedLeg {
  readonly of: { readonly address: string }
  readonly steps: number | bigint
}

export async function deleverage(
  exchange: Exchange,
  account: { readonly address: string },
  legs: readonly RequestedLeg[],
  input: ActionInput,
): Promise<ContractTransactionResponse> {
  const { actionId, asOf, report } = await actionOf(exchange, input)
  await tick(exchange)
  const counterparties = legs.map(({ of }) => of.address)
  const steps = legs.map(({ steps }) => steps)
  return exchange.trader.deleverage(actionId, asOf, account.address, counterparties, steps, report)
}

/** The feed of the final price: a perpetual ends at a price of its own feed. */
export const finalFeedOf = ({ spec }: Pick<Exchange, 'spec'>): string =>
  spec.kind === 'perpetual' ? feedIdOf(spec.marketId) : finalFeedIdOf(spec.marketId)

/** Submits a final report of a closed market, by default observed now. */
export async function reportFinal(
  exchange: Exchange,
  input: ActionInput,
): Promise<ContractTransactionResponse> {
  const { report } = await actionOf(exchange, { feedId: finalFeedOf(exchange), ...input })
  await tick(exchange)
  return exchange.trader.submitFinalReport(report)
}

export async function finalize(
  exchange: Exchange,
  place: Pick<ActionInput, 'actionId' | 'asOf'> = {},
): Promise<ContractTransactionResponse> {
  const actionId = place.actionId ?? Number((await exchange.trader.clock()).actionId) + 1
  const asOf = place.asOf ?? (await nextSecond(exchange)) * 1000
  await tick(exchange)
  return exchange.trader.finalizeMarket(actionId, asOf)
}

/** Schedules mode settling a day ahead and waits for it. Returns the time of the close. */
export async function settleMode(exchange: Exchange): Promise<number> {
  const from = ((await nextSecond(exchange)) + DAY) * 1000
  await tick(exchange)
  await exchange.trader.connect(exchange.admin).scheduleMode(SETTLING, from)
  await exchange.connection.networkHelpers.time.increaseTo(from / 1000)
  return from
}

/** Waits until the dispute window of the final report is over. */
export async function passDisputeWindow(exchange: Exchange): Promise<void> {
  const { reportedAt, disputeWindow } = await exchange.trader.ending()
  await exchange.connection.networkHelpers.time.increaseTo(Number(reportedAt + disputeWindow) / 1000 + 1)
}

/** Reports the final price of a closed market, waits for the dispute window and finalizes. */
export async function endAt(exchange: Exchange, price: bigint): Promise<ContractTransactionResponse> {
  await reportFinal(exchange, { price })
  await passDisputeWindow(exchange)
  return finalize(exchange)
}

/** Advances the clock by `seconds`; the next block is mined one second later. */
export const pass = (exchange: Exchange, seconds: number): Promise<number> =>
  exchange.connection.networkHelpers.time.increase(seconds)

export const DAY = 86_400
const SETTLING = 3
export const SILENCE = DAY
export const INSOLVENCY_WINDOW = 3 * DAY

/** Mints and deposits for an account; a market's own balance covers deficits. */
export async function depositFor(exchange: Exchange, account: string, amount: bigint): Promise<void> {
  const { usdm, bank, admin } = exchange
  await usdm.connect(admin).mint(await admin.getAddress(), amount)
  await usdm.connect(admin).approve(bank, amount)
  await bank.connect(admin).depositFor(account, amount)
}

/** Sets the market's backstop with this cap and free balance. */
export async function withBackstop(exchange: Exchange, cap: bigint, funds: bigint): Promise<Address> {
  const { shared, admin, spec, trader } = exchange
  const backstop = Backstop__factory.connect(shared.backstop, admin)
  await backstop.setBacked(spec.trader, true)
  await trader.connect(admin).setBackstop(shared.backstop, cap)
  if (funds > 0n) await depositFor(exchange, shared.backstop, funds)
  return shared.backstop
}

/** A trade between a buyer and a seller at a price. */
export const trade = (
  exchange: Exchange,
  buyer: Wallet,
  seller: Wallet,
  deal: {
    readonly steps: number
    readonly price: number
    readonly leverage?: number
    readonly sellerLeverage?: number
  },
): Promise<ContractTransactionResponse> =>
  settle(exchange, {
    price: deal.price,
    fills: [
      { by: buyer, side: 'LONG', fill: deal.steps, leverage: deal.leverage ?? 20 },
      { by: seller, side: 'SHORT', fill: deal.steps, leverage: deal.sellerLeverage ?? deal.leverage ?? 20 },
    ],
  })

/** By address, in the order in which the chain compares them. */
export const byAddress = (a: { address: string }, b: { address: string }): number =>
  addressOf(a) < addressOf(b) ? -1 : 1
