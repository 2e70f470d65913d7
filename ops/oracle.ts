/** The commands of `npm run cb -- ops oracle …`: which keys sign the price reports of each feed, and their rotation. `--send` sends. */
import { ZeroHash } from 'ethers'
import { checkSchema } from '../db/migrator.ts'
import { loadListedMarkets } from '../db/terms.ts'
import type { Address } from '../domain/units.ts'
import { type Arguments, type Flags, required, text, toggle } from '../service/command-line.ts'
import { duration } from '../tasks/print.ts'
import { IsolatedTrader__factory } from '../typechain-types/factories/IsolatedTrader__factory.ts'
import { SignedPriceOracle__factory } from '../typechain-types/factories/SignedPriceOracle__factory.ts'
import { type Connection, connect, type Env } from './connect.ts'
import { OpsError } from './error.ts'
import { perform } from './transaction.ts'

const STACK = {
  stack: text(
    '<file>',
    'stack.json of a running stack; without it the environment: RPC_URL, DATABASE_URL, OPS_KEY',
  ),
} as const
const SEND = { send: toggle('send the transactions; without it the command only prints them') } as const
const FEED = {
  feed: text('<feed id>', 'only this feed; without it every feed of the listed markets'),
} as const

interface Command<Declared extends Flags> {
  readonly help: string
  readonly flags: Declared
  readonly run: (connection: Connection, flags: Arguments<Declared>) => Promise<void>
}

const command = <Declared extends Flags>(each: Command<Declared>): Command<Declared> => each

// ---------------------------------------------------------------------- the oracle's state

interface SignerSet {
  readonly signers: readonly Address[]
  readonly threshold: number
}

interface FeedState {
  readonly oracle: Address
  readonly feedId: string
  /** Such as `BTC-PERP index`. */
  readonly name: string
  readonly now: SignerSet
  /** The set after the change that is announced; null if none is. */
  readonly next: SignerSet | null
  /** Seconds between an announcement and its effect. */
  readonly notice: number
}

/** A time after any announced change. */
const LATEST = 2n ** 48n - 1n
/** Publishers read what holds for so long ahead; with a shorter notice they could publish reports of signers that are no longer valid. */
const LEAST_NOTICE_S = 120

const isSame = (one: SignerSet, other: SignerSet): boolean =>
  one.threshold === other.threshold && one.signers.join() === other.signers.join()

/** The feeds of the listed markets that signed reports price; feeds of an aggregator have no signers. */
async function loadFeeds({ db, provider }: Connection): Promise<readonly FeedState[]> {
  const block = await provider.getBlock('latest')
  const at = { blockTag: block?.number ?? 'latest' }
  const headTime = BigInt(block?.timestamp ?? 0) * 1000n
  const found = new Map<string, FeedState>()
  for (const { listed } of await loadListedMarkets(db)) {
    const market = IsolatedTrader__factory.connect(listed.trader, { provider })
    const [oracle, grid] = [(await market.oracle(at)).toLowerCase() as Address, await market.grid(at)]
    const contract = SignedPriceOracle__factory.connect(oracle, { provider })
    const ids = { index: grid.feedId, session: grid.sessionFeedId, final: grid.finalFeedId }
    for (const [kind, feedId] of Object.entries(ids)) {
      if (feedId === ZeroHash || found.has(feedId)) continue
      const sets = await readSets(contract, feedId, headTime, at)
      if (sets === null) continue
      const name = `${listed.symbol} ${kind}`
      found.set(feedId, { oracle, feedId, name, ...sets, notice: Number(await contract.notice(at)) })
    }
  }
  return [...found.values()]
}

/** Null for an oracle without signers. */
async function readSets(
  contract: ReturnType<typeof SignedPriceOracle__factory.connect>,
  feedId: string,
  headTime: bigint,
  at: { readonly blockTag: number | string },
): Promise<Pick<FeedState, 'now' | 'next'> | null> {
  const read = async (time: bigint): Promise<SignerSet> => {
    const [signers, threshold] = await contract.feedAt(feedId, time, at)
    return { signers: signers.map((each) => each.toLowerCase() as Address), threshold: Number(threshold) }
  }
  try {
    const [now, latest] = [await read(headTime), await read(LATEST)]
    return { now, next: isSame(now, latest) ? null : latest }
  } catch (error) {
    if ((error as { readonly code?: string }).code === 'CALL_EXCEPTION') return null
    throw error
  }
}

async function feedsOf(connection: Connection, given: string | undefined): Promise<readonly FeedState[]> {
  const feeds = await loadFeeds(connection)
  if (given === undefined) return feeds
  const found = feeds.filter(({ feedId }) => feedId === given.toLowerCase())
  if (found.length > 0) return found
  throw new OpsError(
    `--feed must be one of ${feeds.map(({ feedId }) => feedId).join(', ')}; received ${given}`,
  )
}

// ---------------------------------------------------------------------- commands

const shownSet = ({ signers, threshold }: SignerSet): string =>
  threshold === 0 ? 'no signers' : `${threshold} of ${signers.length}: ${signers.join(', ')}`

const show = command({
  help: 'the signers of each price feed by the oracle, and an announced change',
  flags: { ...STACK, ...FEED },
  async run(connection, { feed }) {
    for (const { name, feedId, oracle, now, next, notice } of await feedsOf(connection, feed)) {
      console.log(`${name} (${feedId}) at the oracle ${oracle}, notice ${duration(notice)}`)
      console.log(`  now   ${shownSet(now)}`)
      if (next !== null) console.log(`  then  ${shownSet(next)}`)
    }
  },
})

function addressOf(flag: string, given: string): Address {
  if (/^0x[0-9a-fA-F]{40}$/.test(given) && BigInt(given) !== 0n) return given.toLowerCase() as Address
  throw new OpsError(
    `--${flag} must be an address: 0x and 40 hexadecimal digits, not all 0; received ${given}`,
  )
}

const replaced = ({ signers, threshold }: SignerSet, from: Address, to: Address): SignerSet => ({
  signers: signers.map((each) => (each === from ? to : each)).toSorted(),
  threshold,
})

/** The new signer set of a feed, or the reason why it needs none. Throws an OpsError if another change is announced. */
function changeOf({ name, now, next }: FeedState, from: Address, to: Address): SignerSet | string {
  const latest = next ?? now
  if (latest.signers.includes(to) && !latest.signers.includes(from))
    return `${name}: has ${to} instead already`
  if (next !== null)
    throw new OpsError(
      `${name} has an announced change to ${shownSet(next)}: wait for it, or cancel it with ops oracle cancel`,
    )
  if (!now.signers.includes(from)) return `${name}: is not signed by ${from}`
  if (now.signers.includes(to)) throw new OpsError(`--to must be no signer of ${name} yet; received ${to}`)
  return replaced(now, from, to)
}

const effectOf = ({ notice }: FeedState): string =>
  notice === 0
    ? 'at once, also for reports that are not settled yet'
    : `for reports observed ${duration(notice)} after the block of the transaction or later; the former signers sign those before`

const rotate = command({
  help: 'replaces a signer of price reports by another in every feed that it signs; the number of signatures stays',
  flags: {
    ...STACK,
    from: required(text('<address>', 'the signer to replace')),
    to: required(text('<address>', 'its replacement, which already runs')),
    ...FEED,
    ...SEND,
  },
  async run(connection, { from: givenFrom, to: givenTo, feed, send }) {
    const [from, to] = [addressOf('from', givenFrom), addressOf('to', givenTo)]
    if (from === to) throw new OpsError(`--to must be another address than --from; received ${to}`)
    const changes = (await feedsOf(connection, feed)).map((each) => ({
      each,
      change: changeOf(each, from, to),
    }))
    if (changes.every(({ change }) => typeof change === 'string' && change.includes('is not signed by')))
      throw new OpsError(`--from must be a signer of a feed; received ${from}, which signs none of them`)
    for (const { each, change } of changes) {
      if (typeof change === 'string') {
        console.log(change)
        continue
      }
      if (each.notice > 0 && each.notice < LEAST_NOTICE_S)
        console.log(
          `The oracle's notice of ${duration(each.notice)} is below ${duration(LEAST_NOTICE_S)}: reports near the change may be rejected.`,
        )
      await perform(
        connection,
        {
          to: each.oracle,
          name: 'setFeed',
          args: [each.feedId, change.signers, change.threshold],
          shown: {
            feed: `${each.feedId} (${each.name})`,
            before: shownSet(each.now),
            after: shownSet(change),
          },
          effect: effectOf(each),
        },
        send,
      )
    }
  },
})

const cancel = command({
  help: 'drops the announced changes of signers',
  flags: { ...STACK, ...FEED, ...SEND },
  async run(connection, { feed, send }) {
    const waiting = (await feedsOf(connection, feed)).filter(({ next }) => next !== null)
    if (waiting.length === 0) throw new OpsError('no change of signers is announced')
    for (const { oracle, feedId, name, now, next } of waiting)
      await perform(
        connection,
        {
          to: oracle,
          name: 'cancelFeed',
          args: [feedId],
          shown: {
            feed: `${feedId} (${name})`,
            dropped: shownSet(next as SignerSet),
            stays: shownSet(now),
          },
          effect: 'at once',
        },
        send,
      )
  },
})

export const ORACLE_COMMANDS = { show, rotate, cancel } as const

/** Runs one command. `flags` are its own. */
export async function runOracleCommand(
  name: keyof typeof ORACLE_COMMANDS,
  flags: Arguments<typeof STACK>,
  env: Env,
): Promise<void> {
  const connection = await connect(flags.stack ?? null, env)
  try {
    await checkSchema(connection.db)
    const run = ORACLE_COMMANDS[name].run as (connection: Connection, flags: unknown) => Promise<void>
    await run(connection, flags)
  } finally {
    await connection.close()
  }
}
