/**
 * Relay operations under random chains: requests of the exchange and of other parties, direct calls, and forks at any block. After each history
 * nonces, keys and operations are those of the blocks that remain.
 */
import { expect } from 'chai'
import { Wallet } from 'ethers'
import fc from 'fast-check'
import { after, before, describe, it } from 'mocha'
import { openRelays } from '../../../db/relay-operations.ts'
import type { ChainFact } from '../../../domain/chain/facts.ts'
import { ACCOUNTS_SHARD } from '../../../domain/journal/journal-row.ts'
import { isFulfilled, nextForwardNonce, type RelayEffect } from '../../../domain/relays/operation.ts'
import type { Address } from '../../../domain/units.ts'
import type { BlockFact, ChainRecord } from '../../../indexer/ingest/chain-record.ts'
import { LocalEngine } from '../../support/local-engine.ts'
import { perpetual } from '../../support/markets.ts'
import { createShard } from '../../support/rows/journal.ts'
import { listMarket } from '../../support/rows/markets.ts'
import { acceptRelay } from '../support/accepted-relay.ts'
import { freshDatabase } from '../support/database.ts'
import { CHAIN_ID, type ExchangeDatabase, followPorts, withEngine } from '../support/exchange-fixture.ts'
import { UNREAD_CHAIN } from '../support/recorded-chain.ts'

const KEYS = 3
const keyOf = (n: number) => `0x${String(n).repeat(40)}` as Address

type Kind = 'register_session_key' | 'revoke_session_key'
interface Effect {
  readonly kind: Kind
  readonly key: number
}
/** `relayed`: the request that the exchange has accepted for the next nonce, if there is one. */
type Step =
  | { readonly do: 'accept' | 'execute' | 'call'; readonly effect: Effect }
  | { readonly do: 'relayed' | 'fork' }

const effect = fc.record({
  kind: fc.constantFrom<Kind>('register_session_key', 'revoke_session_key'),
  key: fc.nat(KEYS - 1),
})
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('accept' as const), effect }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('relayed' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('execute' as const, 'call' as const), effect }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('fork' as const) }) },
)

interface KeyState {
  readonly permissions: number
  readonly revoked_at: number | null
}
/** The chain after a block, and the effect of the nonce that the block executed. */
interface Block {
  readonly keys: ReadonlyMap<number, KeyState>
  readonly executed: number
  /** Whether the block executed a nonce. */
  readonly nonce: number | null
}
const GENESIS: Block = { keys: new Map(), executed: 0, nonce: null }

describe('relay operations under forks', function () {
  this.timeout(60_000)
  let exchange: ExchangeDatabase
  let chain: ChainRecord
  let users = 0
  before(async () => {
    const test = await freshDatabase()
    await createShard(test.db, ACCOUNTS_SHARD)
    await listMarket(test.db, perpetual)
    exchange = withEngine(test, await LocalEngine.over(test))
    chain = followPorts(exchange, UNREAD_CHAIN).record
  })
  after(() => exchange.close())

  async function play(steps: readonly Step[]): Promise<void> {
    const { db, engine } = exchange
    const owner = Wallet.createRandom().address.toLowerCase() as Address
    const account = ++users
    const created = { kind: 'user_created', user_id: account, address: owner, at: 0 } as const
    await engine.write([{ shard: ACCOUNTS_SHARD, row: created }])
    const first = await startChain()
    const blocks: Block[] = [GENESIS]
    const operations: { readonly id: string; readonly nonce: number; readonly effect: RelayEffect }[] = []
    const tip = (): Block => blocks.at(-1) as Block

    async function accept({ kind, key }: Effect): Promise<void> {
      const open = (await openRelays(db, owner)).map((each) => each.nonce)
      const nonce = nextForwardNonce(tip().executed, open)
      const id = `${owner}-${operations.length}`
      await acceptRelay(engine, {
        operation_id: id,
        user_id: account,
        kind,
        session_key: keyOf(key),
        owner,
        nonce,
      })
      operations.push({ id, nonce, effect: { kind, sessionKey: keyOf(key) } })
    }

    /** A block with the call, forwarded with the next nonce or sent directly. A call that would revert leaves no block. */
    async function mine({ kind, key }: Effect, isForwarded: boolean): Promise<void> {
      const { keys, executed } = tip()
      const state = keys.get(key)
      const number = first + blocks.length - 1
      if (kind === 'revoke_session_key' && state === undefined) return
      const isNoop = kind === 'revoke_session_key' && state?.revoked_at !== null
      const change =
        kind === 'register_session_key'
          ? { permissions: 3, registered_at: 1, expires_at: 2_000_000_000 }
          : { revoked_at: number }
      const updated: ChainFact = { kind: 'session_key_updated', owner, key: keyOf(key), change }
      const forwarded: ChainFact = {
        kind: 'forward_request_executed',
        signer: owner,
        nonce: executed,
        success: true,
      }
      await record(number, [...(isNoop ? [] : [updated]), ...(isForwarded ? [forwarded] : [])])
      const after =
        kind === 'register_session_key'
          ? { permissions: 3, revoked_at: null }
          : { permissions: 3, revoked_at: number }
      blocks.push({
        keys: isNoop ? keys : new Map([...keys, [key, after]]),
        executed: executed + (isForwarded ? 1 : 0),
        nonce: isForwarded ? executed : null,
      })
    }

    async function relayNext(): Promise<void> {
      const next = operations.findLast(({ nonce }) => nonce === tip().executed)
      if (next === undefined || !('sessionKey' in next.effect)) return
      const key = [...Array(KEYS).keys()].find(
        (n) => keyOf(n) === (next.effect as { sessionKey: string }).sessionKey,
      ) as number
      await mine({ kind: next.effect.kind as Kind, key }, true)
    }

    async function fork(): Promise<void> {
      if (blocks.length === 1) return
      const number = first + blocks.length - 2
      await chain.rollBack({ number, hash: hashOf(number) })
      blocks.pop()
    }

    for (const step of steps) {
      if (step.do === 'relayed') await relayNext()
      else if (step.do === 'fork') await fork()
      else if ('effect' in step && step.do === 'accept') await accept(step.effect)
      else if ('effect' in step) await mine(step.effect, step.do === 'execute')
    }
    expect(await stored(owner)).to.deep.equal(expected())

    function expected() {
      const statusOf = ({ nonce, effect: wanted }: (typeof operations)[number]): string => {
        const block = blocks.find((each) => each.nonce === nonce)
        if (block === undefined) return 'QUEUED'
        const n = [...Array(KEYS).keys()].find(
          (each) => 'sessionKey' in wanted && keyOf(each) === wanted.sessionKey,
        ) as number
        return isFulfilled(wanted, { key: block.keys.get(n) ?? null, floor: 0n }) ? 'CONFIRMED' : 'FAILED'
      }
      const keys = [...tip().keys].map(([n, { revoked_at }]) => [keyOf(n), revoked_at])
      return {
        next: tip().executed,
        keys: keys.sort(),
        statuses: operations.map((each) => [each.id, statusOf(each)]).sort(),
      }
    }
  }

  const hashOf = (number: number): string => `0xhash${number}`

  /** The database follows a chain whose next block has the returned number. */
  async function startChain(): Promise<number> {
    await chain.bind({ chainId: CHAIN_ID, hash: '0x' }, 1)
    return (await chain.progress()).nextBlock
  }

  async function record(number: number, facts: readonly ChainFact[]): Promise<void> {
    const hash = hashOf(number)
    const block = { number, hash, parentHash: hashOf(number - 1), timestamp: number, transactions: [] }
    const logOf = (fact: ChainFact, logIndex: number): BlockFact => ({
      fact,
      log: {
        block: number,
        blockHash: hash,
        logIndex,
        txHash: `0xtx${number}`,
        address: '0x' as Address,
        topics: [],
        data: '0x',
      },
    })
    const next = { from: number, block, facts: facts.map(logOf), mismatches: [] }
    expect(await chain.ingest(next)).to.deep.equal({ kind: 'recorded', mismatches: [] })
  }

  async function stored(owner: string) {
    const { db } = exchange
    const nonce = await db
      .selectFrom('forwarder_nonces')
      .select('next_nonce')
      .where('signer', '=', owner)
      .executeTakeFirst()
    const keys = await db
      .selectFrom('session_keys')
      .select(['key', 'revoked_at'])
      .where('owner', '=', owner)
      .execute()
    const operations = await db
      .selectFrom('relay_operations')
      .select(['operation_id', 'status'])
      .where('owner', '=', owner)
      .execute()
    return {
      next: nonce?.next_nonce ?? 0,
      keys: keys.map(({ key, revoked_at }) => [key, revoked_at]).sort(),
      statuses: operations.map(({ operation_id, status }) => [operation_id, status]).sort(),
    }
  }

  it('when blocks come and go in any order, nonces, keys and operations are those of the blocks that remain', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyStep, { minLength: 5, maxLength: 25 }), (steps) => play(steps)),
      { numRuns: 25 },
    )
  })
})
