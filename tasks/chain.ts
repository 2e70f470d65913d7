/** Reads of the chain that tasks share: the market at an address, its spec, and decoded errors. */
import { getAddress, Interface, type Provider, type TransactionResponse } from 'ethers'
import type { HardhatRuntimeEnvironment } from 'hardhat/types/hre'
import {
  MAX_ORDER_STEPS,
  type MarketKind,
  type MarketMode,
  type MarketSpec,
} from '../domain/market/market.ts'
import type { Address, MarketId, Millis, Price, Quantity, Rate, Steps, Ticks } from '../domain/units.ts'
import { AccountManager__factory } from '../typechain-types/factories/AccountManager__factory.ts'
import { AggregatorOracle__factory } from '../typechain-types/factories/AggregatorOracle__factory.ts'
import { Backstop__factory } from '../typechain-types/factories/Backstop__factory.ts'
import { ExchangeAccess__factory } from '../typechain-types/factories/ExchangeAccess__factory.ts'
import { Forwarder__factory } from '../typechain-types/factories/Forwarder__factory.ts'
import { IsolatedTrader__factory } from '../typechain-types/factories/IsolatedTrader__factory.ts'
import { MarginBank__factory } from '../typechain-types/factories/MarginBank__factory.ts'
import { SignedPriceOracle__factory } from '../typechain-types/factories/SignedPriceOracle__factory.ts'
import { TestUSDM__factory } from '../typechain-types/factories/TestUSDM__factory.ts'
import type { IsolatedTrader } from '../typechain-types/IsolatedTrader.ts'

export const KINDS: readonly MarketKind[] = ['perpetual', 'future', 'binary_future']
export const MODES: readonly MarketMode[] = ['open', 'cancel_only', 'halted', 'settling', 'settled']

/** Every function, event and error of the contracts. */
export const KNOWN = new Interface(
  [
    IsolatedTrader__factory,
    MarginBank__factory,
    SignedPriceOracle__factory,
    AggregatorOracle__factory,
    AccountManager__factory,
    Backstop__factory,
    ExchangeAccess__factory,
    Forwarder__factory,
    TestUSDM__factory,
  ].flatMap(({ abi }) => abi.filter(({ type }) => type !== 'constructor') as never[]),
)

export async function providerOf(hre: HardhatRuntimeEnvironment): Promise<Provider> {
  return (await hre.network.create()).ethers.provider
}

export function addressOf(value: unknown, argument: string): string {
  try {
    return getAddress(String(value))
  } catch {
    throw new Error(`--${argument} must be an address; received ${JSON.stringify(value)}`)
  }
}

/** The market at an address. Throws if the address has no code or is another contract. */
export async function traderAt(provider: Provider, value: string): Promise<IsolatedTrader> {
  const address = addressOf(value, 'trader')
  if ((await provider.getCode(address)) === '0x') {
    throw new Error(
      `--trader must be a market's contract; received ${address}, which has no code on this chain`,
    )
  }
  const trader = IsolatedTrader__factory.connect(address, { provider })
  try {
    await trader.grid()
  } catch {
    throw new Error(`--trader must be a market's contract; received ${address}, which is another contract`)
  }
  return trader
}

/** Spec of a market from its contract. Order size limits are the exchange's terms and not on chain: here the contract's bounds. */
export async function specOf(trader: IsolatedTrader): Promise<MarketSpec> {
  const [grid, now] = [await trader.grid(), await trader.parameters()]
  const rate = (millionths: bigint): Rate => (millionths * 10n ** 12n) as Rate
  return {
    marketId: Number(grid.marketId) as MarketId,
    symbol: `market ${grid.marketId}`,
    kind: KINDS[Number(grid.kind)] as MarketKind,
    trader: (await trader.getAddress()).toLowerCase() as Address,
    chainId: (await trader.eip712Domain()).chainId,
    tick: grid.tick as Price,
    step: grid.step as Quantity,
    minPrice: 1 as Ticks,
    minQuantity: 1 as Steps,
    maxQuantity: MAX_ORDER_STEPS,
    maxLeverage: Number(now.maxLeverage),
    imr: rate(now.imr),
    mmr: rate(now.mmr),
    mtbLong: rate(now.mtbLong),
    mtbShort: rate(now.mtbShort),
    makerFee: rate(now.makerFee),
    takerFee: rate(now.takerFee),
    fundingCap: rate(now.fundingCap),
    fundingSession: BigInt(grid.sessionFeedId) !== 0n,
    finalLow: grid.finalLow as Price,
    finalHigh: grid.finalHigh as Price,
    expiresAt: Number(grid.expiresAt) as Millis,
    disputeWindow: Number(grid.disputeWindow) as Millis,
  }
}

/** The data of a revert. Nodes and libraries put it at different depths of their errors. */
function revertDataOf(error: unknown): string | null {
  for (let each = error, depth = 0; typeof each === 'object' && each !== null && depth < 5; depth++) {
    const { data, cause, error: inner } = each as { data?: unknown; cause?: unknown; error?: unknown }
    if (typeof data === 'string' && data.length >= 10) return data
    each = data ?? cause ?? inner
  }
  return null
}

/** A contract error with the names of its arguments; any other error's message. */
export function reasonOf(error: unknown): string {
  const data = revertDataOf(error)
  const parsed = data === null ? null : KNOWN.parseError(data)
  if (parsed === null) return (error as Error).message
  const said = parsed.fragment.inputs.map(({ name }, index) => `${name} ${parsed.args[index]}`)
  return `${parsed.name}(${said.join(', ')})`
}

/** Waits until a transaction is mined. Throws the decoded reason if it reverts; `what` states the step. */
export async function mined(what: string, sending: Promise<TransactionResponse>): Promise<void> {
  try {
    await (await sending).wait()
  } catch (error) {
    throw new Error(`${what}: ${reasonOf(error)}`)
  }
}
