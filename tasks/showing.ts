/** Tasks that show a market and an account. Read-only. */
import type { Log, Provider } from 'ethers'
import type { HardhatRuntimeEnvironment } from 'hardhat/types/hre'
import { abs, maxOf, toDecimal } from '../domain/units.ts'
import { logsOf } from '../ignition/logs.ts'
import { FUNCTIONS, ROLES, type Role } from '../stack/access.ts'
import { ExchangeAccess__factory } from '../typechain-types/factories/ExchangeAccess__factory.ts'
import { MarginBank__factory } from '../typechain-types/factories/MarginBank__factory.ts'
import type { IsolatedTrader, MarketGridStructOutput } from '../typechain-types/IsolatedTrader.ts'
import { addressOf, KINDS, MODES, providerOf, traderAt } from './chain.ts'
import { duration, percent, price, print, timeOfMillis, timeOfSeconds, units, usdm } from './print.ts'

const NOWHERE = `0x${'0'.repeat(40)}`
const NO_FEED = `0x${'0'.repeat(64)}`

// ---------------------------------------------------------------------- a market

export async function showMarket(
  { trader }: { trader: string },
  hre: HardhatRuntimeEnvironment,
): Promise<void> {
  const provider = await providerOf(hre)
  const market = await traderAt(provider, trader)
  const grid = await market.grid()
  await printGrid(provider, market, grid)
  await printParameters(market)
  await printQueue(market, grid)
  await printEnd(market)
  await printRoles(provider, market)
}

async function printGrid(
  provider: Provider,
  market: IsolatedTrader,
  grid: MarketGridStructOutput,
): Promise<void> {
  const bank = MarginBank__factory.connect(await market.bank(), { provider })
  const { pool, fees, openFrom } = await bank.market(await market.getAddress())
  print(`market ${grid.marketId} (${KINDS[Number(grid.kind)]})`, {
    trader: await market.getAddress(),
    tick: price(grid.tick),
    step: units(grid.step),
    'price feed': grid.feedId,
    'session feed': grid.sessionFeedId === NO_FEED ? 'none: the market has no sessions' : grid.sessionFeedId,
    'final price': grid.kind === 0n ? 'none' : `${toDecimal(grid.finalLow)} to ${price(grid.finalHigh)}`,
    ...(grid.kind !== 0n && { 'final feed': grid.finalFeedId, expiry: timeOfMillis(grid.expiresAt) }),
    'dispute window': `${grid.disputeWindow} ms from the first final report`,
    'may settle':
      openFrom === 0n
        ? 'never: it is not listed'
        : `from ${timeOfSeconds(openFrom)}, except while the bank is paused`,
    pool: usdm(pool),
    'fees to collect': usdm(fees),
    bank: await market.bank(),
    'session keys': await market.accountManager(),
    oracle: await market.oracle(),
    extension: await market.extension(),
  })
}

async function printParameters(market: IsolatedTrader): Promise<void> {
  const now = await market.parameters()
  print('parameters', {
    mode: MODES[Number(now.mode)],
    'initial margin': `${percent(now.imr)} of notional`,
    'maintenance margin': `${percent(now.mmr)} of notional`,
    'highest leverage': now.maxLeverage,
    'price band': `- ${percent(now.mtbShort)} to + ${percent(now.mtbLong)} of the oracle price`,
    'highest maker and taker rate': `${percent(now.makerFee)}, ${percent(now.takerFee)}`,
    'oldest report': `${now.reportMaxAge} ms before an action`,
    'move between reports': `${percent(now.moveBase)} over ${now.moveWindow} ms + ${percent(now.moveSlope)} per second`,
    'highest funding':
      now.fundingCap === 0n ? 'none' : `${percent(now.fundingCap)} of the oracle price per hour`,
  })
  const next = await market.pendingChange()
  const waiting = {
    ...(next.parametersFrom !== 0n && { parameters: `from ${timeOfMillis(next.parametersFrom)}` }),
    ...(next.modeFrom !== 0n && { mode: `${MODES[Number(next.mode)]} from ${timeOfMillis(next.modeFrom)}` }),
    ...(next.restrictionFrom !== 0n && {
      restriction: `${MODES[Number(next.restriction)]} after ${timeOfMillis(next.restrictionFrom)}`,
    }),
  }
  if (Object.keys(waiting).length > 0) print('scheduled changes', waiting)
}

async function printQueue(market: IsolatedTrader, grid: MarketGridStructOutput): Promise<void> {
  const [clock, last, funding] = [
    await market.clock(),
    await market.lastReference(),
    await market.fundingRate(),
  ]
  print('last action', {
    number: clock.actionId,
    'last batch': clock.batchId === 0n ? 'none' : `${clock.batchId}, part ${clock.part} of ${clock.parts}`,
    'as of': timeOfMillis(clock.asOf),
    'clearing price': clock.batchId === 0n ? '-' : price(clock.price * grid.tick),
    'oracle price': last.observedAt === 0n ? '-' : price(last.oraclePrice),
    'observed at': timeOfMillis(last.observedAt),
    'funding index': `${last.fundingIndex} wei paid by one long step since deployment`,
    'funding rate':
      funding.validUntil === 0n
        ? 'none'
        : `${funding.rate} wei per step and hour, ${timeOfMillis(funding.validFrom)} to ${timeOfMillis(funding.validUntil)}`,
  })
}

async function printEnd(market: IsolatedTrader): Promise<void> {
  const [risk, windDown, ending] = [await market.riskTerms(), await market.windDown(), await market.ending()]
  print('risk and wind-down', {
    backstop:
      risk.backstop === NOWHERE ? 'none' : `${risk.backstop}, up to ${usdm(risk.backstopCap)} of notional`,
    ...(ending.expiresAt !== 0n && { expires: timeOfMillis(ending.expiresAt) }),
    ...(ending.settlingAt !== 0n && { 'settles from': timeOfMillis(ending.settlingAt) }),
    ...(ending.reportedAt !== 0n && {
      'final report': `${price(ending.price)}, replaceable until ${timeOfMillis(ending.reportedAt + ending.disputeWindow)}`,
    }),
    'last heartbeat': timeOfMillis(windDown.heartbeatAt),
    'freeze requested': timeOfMillis(windDown.requestedAt),
    ended: windDown.endedAt === 0n ? 'no' : `${timeOfMillis(windDown.endedAt)} at ${price(windDown.price)}`,
    ...(windDown.endedAt !== 0n && {
      'pool at the end': usdm(windDown.poolAtEnd),
      'reported deficits': usdm(windDown.deficit),
      haircut: windDown.haircutFixed ? `${usdm(windDown.haircutPool)} for all claims` : 'not fixed yet',
    }),
  })
}

/**
 * All events of one kind. The first block of a market is unknown here, so the first query asks for the whole chain, and smaller ranges
 * follow only if the node refuses it.
 */
async function eventsOf(provider: Provider, address: string, topic: string): Promise<readonly Log[]> {
  const head = await provider.getBlockNumber()
  return logsOf(provider, { address: [address], topics: [topic] }, 0, head, head + 1)
}

/** Operators, from the market, and members of roles, from the access manager. */
async function printRoles(provider: Provider, market: IsolatedTrader): Promise<void> {
  const access = ExchangeAccess__factory.connect(await market.authority(), { provider })
  const { fragment: changed } = market.filters.OperatorChanged
  const changes = await eventsOf(provider, await market.getAddress(), changed.topicHash)
  const proposed = changes.map(
    (log) => market.interface.decodeEventLog(changed, log.data, log.topics).operator,
  )
  const operators: string[] = []
  for (const operator of new Set<string>(proposed)) {
    const status = await market.operatorStatus(operator)
    if (status !== 0n) operators.push(`${operator}${status === 1n ? ' (has not accepted yet)' : ''}`)
  }
  const roles: Record<string, string> = { operator: operators.join(', ') || 'none' }
  const { fragment: granted } = access.filters.RoleGranted
  const grants = (await eventsOf(provider, await access.getAddress(), granted.topicHash)).map((log) =>
    access.interface.decodeEventLog(granted, log.data, log.topics),
  )
  for (const role of ['admin', ...Object.keys(FUNCTIONS.IsolatedTrader)] as Role[]) {
    const members: string[] = []
    const accounts = grants.filter(({ roleId }) => roleId === ROLES[role]).map(({ account }) => account)
    for (const account of new Set<string>(accounts)) {
      const [isMember, delay] = await access.hasRole(ROLES[role], account)
      if (isMember)
        members.push(`${account} (${delay === 0n ? 'at once' : `after ${duration(Number(delay))}`})`)
    }
    roles[role] = members.join(', ') || 'none'
  }
  print('operators and roles', roles)
}

// ---------------------------------------------------------------------- an account

export async function showAccount(
  given: { trader: string; account: string },
  hre: HardhatRuntimeEnvironment,
): Promise<void> {
  const provider = await providerOf(hre)
  const market = await traderAt(provider, given.trader)
  const account = addressOf(given.account, 'account')
  const bank = MarginBank__factory.connect(await market.bank(), { provider })
  const balance = await bank.account(account)
  print(`account ${account}`, {
    free: usdm(balance.free),
    'pending withdrawal': usdm(balance.pending),
    'requested at': timeOfSeconds(balance.requestedAt),
  })
  await printPosition(market, account)
}

async function printPosition(market: IsolatedTrader, account: string): Promise<void> {
  const [held, grid, last] = [
    await market.position(account),
    await market.grid(),
    await market.lastReference(),
  ]
  const [equityX, notionalX] = await market.health(account, last.oraclePrice)
  const floors = await market.floors(account)
  print(`position in market ${grid.marketId}`, {
    size:
      held.size === 0n ? 'none' : `${units(held.size * grid.step)} (${held.size > 0n ? 'long' : 'short'})`,
    ...(held.size !== 0n && {
      'entry price': price((held.entryNotional * 10n ** 18n) / (abs(held.size) * grid.step)),
      'entry notional': usdm(held.entryNotional),
    }),
    margin: usdm(held.margin),
    leverage: held.leverage,
    'oracle price':
      last.observedAt === 0n ? '-' : `${price(last.oraclePrice)}, ${timeOfMillis(last.observedAt)}`,
    equity: usdm(equityX / 10n ** 18n),
    'margin ratio': notionalX === 0n ? '-' : percent((equityX * 10n ** 6n) / BigInt(notionalX)),
    'lowest margin nonce': floors.marginNonce,
    'cancelled below salt': maxOf(floors.requested, floors.settled),
  })
}
