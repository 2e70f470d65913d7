/** Computes from the chain's state which calls are missing until a market is live, and their callers. */
import { type Provider, ZeroAddress } from 'ethers'
import { FUNCTIONS, type Granted, ROLES, type Role } from '../stack/access.ts'
import { feedsOf } from '../stack/deploy.ts'
import { Backstop__factory } from '../typechain-types/factories/Backstop__factory.ts'
import { ExchangeAccess__factory } from '../typechain-types/factories/ExchangeAccess__factory.ts'
import { IsolatedTrader__factory } from '../typechain-types/factories/IsolatedTrader__factory.ts'
import { MarginBank__factory } from '../typechain-types/factories/MarginBank__factory.ts'
import { SignedPriceOracle__factory } from '../typechain-types/factories/SignedPriceOracle__factory.ts'
import { contractOf, type Deployment, traderOf } from './deployment.ts'
import type { MarketFile } from './market-file.ts'
import { selectorsOf } from './selectors.ts'

export interface MarketCall {
  /** Contract, function and arguments in readable form. */
  readonly what: string
  readonly by: Role | 'operator'
  /** The operator that must call; null if the holder of the role `by` must call. */
  readonly caller: string | null
  readonly target: string
  readonly data: string
  /** Precondition in words; null: none. */
  readonly after: string | null
  /** The call reverts before this time (Unix seconds); 0: no bound. */
  readonly from: number
}

export interface MarketState {
  readonly provider: Provider
  readonly deployment: Deployment
  readonly file: MarketFile
}

/** As in `OperatorStatus`. */
const PROPOSED = 1n
const APPROVED = 2n

/** A time in milliseconds far enough ahead that `feedAt` returns the scheduled signers of a feed. */
const LATER = 2n ** 47n

/** Missing calls in an executable order; empty if the market is live. */
export async function missingCalls(state: MarketState): Promise<readonly MarketCall[]> {
  const functions = await missingAssignments(state)
  const assigned = functions.length === 0 ? null : 'its functions are assigned to their roles'
  return [
    ...functions,
    ...(await missingFeeds(state)),
    ...(await missingOperators(state, assigned)),
    ...(await missingBackstop(state, assigned)),
    ...(await missingListing(state)),
  ]
}

/** Only the admin can call a function that is not assigned to a role. */
async function missingAssignments({ provider, deployment, file }: MarketState): Promise<MarketCall[]> {
  const trader = traderOf(deployment, file.spec.marketId)
  const target = contractOf(deployment, 'ExchangeAccess')
  const access = ExchangeAccess__factory.connect(target, { provider })
  const calls: MarketCall[] = []
  for (const [role, functions] of Object.entries(FUNCTIONS.IsolatedTrader) as [Granted, string[]][]) {
    const selectors = selectorsOf('IsolatedTrader', functions)
    const found = await Promise.all(selectors.map((each) => access.getTargetFunctionRole(trader, each)))
    if (found.every((id) => id === ROLES[role])) continue
    calls.push({
      what: `ExchangeAccess.setTargetFunctionRole(${trader}, [${functions.join(', ')}], ${role})`,
      by: 'admin',
      caller: null,
      target,
      data: access.interface.encodeFunctionData('setTargetFunctionRole', [trader, selectors, ROLES[role]]),
      after: null,
      from: 0,
    })
  }
  return calls
}

async function missingFeeds({ provider, deployment, file }: MarketState): Promise<MarketCall[]> {
  const target = contractOf(deployment, 'SignedPriceOracle')
  const oracle = SignedPriceOracle__factory.connect(target, { provider })
  const { signers, threshold } = file.oracle
  const calls: MarketCall[] = []
  for (const feed of feedsOf(file.spec)) {
    const [found, needed] = await oracle.feedAt(feed, LATER)
    if (`${[...found]}`.toLowerCase() === `${signers}` && needed === BigInt(threshold)) continue
    calls.push({
      what: `SignedPriceOracle.setFeed(${feed}, [${signers.join(', ')}], ${threshold})`,
      by: 'parameters',
      caller: null,
      target,
      data: oracle.interface.encodeFunctionData('setFeed', [feed, [...signers], threshold]),
      after: null,
      from: 0,
    })
  }
  return calls
}

async function missingOperators(state: MarketState, assigned: string | null): Promise<MarketCall[]> {
  const { provider, deployment, file } = state
  const target = traderOf(deployment, file.spec.marketId)
  const trader = IsolatedTrader__factory.connect(target, { provider })
  const calls: MarketCall[] = []
  for (const operator of file.operators) {
    const status = await trader.operatorStatus(operator)
    if (status < PROPOSED) {
      calls.push({
        what: `IsolatedTrader.proposeOperator(${operator})`,
        by: 'parameters',
        caller: null,
        target,
        data: trader.interface.encodeFunctionData('proposeOperator', [operator]),
        after: assigned,
        from: 0,
      })
    }
    if (status >= APPROVED) continue
    calls.push({
      what: 'IsolatedTrader.acceptOperator()',
      by: 'operator',
      caller: operator,
      target,
      data: trader.interface.encodeFunctionData('acceptOperator'),
      after: status < PROPOSED ? 'it is proposed' : null,
      from: 0,
    })
  }
  return calls
}

async function missingBackstop(state: MarketState, assigned: string | null): Promise<MarketCall[]> {
  const { provider, deployment, file } = state
  const traderAddress = traderOf(deployment, file.spec.marketId)
  const backstopAddress = contractOf(deployment, 'Backstop')
  const trader = IsolatedTrader__factory.connect(traderAddress, { provider })
  const backstop = Backstop__factory.connect(backstopAddress, { provider })
  const named = file.backstopCap > 0n ? backstopAddress : ZeroAddress
  const terms = await trader.riskTerms()
  if (terms.backstop === named && terms.backstopCap === file.backstopCap) return []
  const isBacked = named === ZeroAddress || (await backstop.backs(traderAddress))
  const agree: MarketCall = {
    what: `Backstop.setBacked(${traderAddress}, true)`,
    by: 'treasury',
    caller: null,
    target: backstopAddress,
    data: backstop.interface.encodeFunctionData('setBacked', [traderAddress, true]),
    after: null,
    from: 0,
  }
  const name: MarketCall = {
    what: `IsolatedTrader.setBackstop(${named}, ${file.backstopCap})`,
    by: 'parameters',
    caller: null,
    target: traderAddress,
    data: trader.interface.encodeFunctionData('setBackstop', [named, file.backstopCap]),
    after: assigned ?? (isBacked ? null : 'the backstop has agreed'),
    from: 0,
  }
  return isBacked ? [name] : [agree, name]
}

/** The bank lists an announced market that has an operator. */
function precondition(isAnnounced: boolean, isOperated: boolean): string | null {
  if (!isAnnounced) return 'it is announced'
  return isOperated ? null : 'an operator has accepted'
}

async function missingListing({ provider, deployment, file }: MarketState): Promise<MarketCall[]> {
  const trader = traderOf(deployment, file.spec.marketId)
  const target = contractOf(deployment, 'MarginBank')
  const bank = MarginBank__factory.connect(target, { provider })
  if ((await bank.market(trader)).openFrom !== 0n) return []
  const { listableFrom, lapsesAt } = await bank.announcement(trader)
  const now = BigInt((await provider.getBlock('latest'))?.timestamp ?? 0)
  const isAnnounced = now < lapsesAt
  const [, operators] = await IsolatedTrader__factory.connect(trader, { provider }).readiness()
  const call = (name: string, data: string, after: string | null, from: number): MarketCall => ({
    what: `MarginBank.${name}(${trader})`,
    by: 'listing',
    caller: null,
    target,
    data,
    after,
    from,
  })
  const list = call(
    'listMarket',
    bank.interface.encodeFunctionData('listMarket', [trader]),
    precondition(isAnnounced, operators > 0n),
    Number(listableFrom),
  )
  if (isAnnounced) return [list]
  return [
    call('announceMarket', bank.interface.encodeFunctionData('announceMarket', [trader]), null, 0),
    list,
  ]
}
