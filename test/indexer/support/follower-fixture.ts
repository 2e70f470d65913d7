/** A deployed exchange, and for each test a database with a follower. The chain is reset after each test. */
import { expect } from 'chai'
import type { Wallet } from 'ethers'
import { after, afterEach, before, beforeEach } from 'mocha'
import type { ExchangeState } from '../../../domain/exchange/state.ts'
import type { Follower } from '../../../indexer/ingest/follow.ts'
import type { Chain } from '../../../indexer/ports.ts'
import { useAnvil } from '../../support/anvil.ts'
import type { LocalEngineOptions } from '../../support/local-engine.ts'
import { chainState, expectBooks, expectConservation, expectPositions } from './audit.ts'
import {
  CHAIN_ID,
  catchUp,
  type ExchangeDatabase,
  ExchangeFixture,
  type FillInput,
  projectAll,
} from './exchange-fixture.ts'
import { matchPart } from './matched-part.ts'

export interface FollowerContext {
  readonly exchange: ExchangeFixture
  readonly test: ExchangeDatabase
  readonly chain: Chain & { close(): void }
  readonly follower: Follower
  readonly alice: Wallet
  readonly bob: Wallet
  readonly users: readonly Wallet[]
}

export class FollowerFixture {
  #context: FollowerContext | undefined
  #salt = 1n
  readonly #open: { close(): unknown }[] = []

  get context(): FollowerContext {
    if (this.#context === undefined) throw new Error('the context is created before each test')
    return this.#context
  }

  async open(exchange: ExchangeFixture, alice: Wallet, bob: Wallet): Promise<void> {
    const test = await exchange.database()
    const chain = exchange.chain()
    this.#open.push(test, chain)
    const follower = exchange.follower(test, chain)
    this.#context = { exchange, test, chain, follower, alice, bob, users: [alice, bob] }
  }

  async close(): Promise<void> {
    for (const resource of this.#open.splice(0)) await resource.close()
  }

  /** Deposits for both users. */
  async fund(): Promise<void> {
    const { exchange, alice, bob } = this.context
    await exchange.deposit(alice, '10000')
    await exchange.deposit(bob, '10000')
  }

  async fundAndFollow(): Promise<void> {
    await this.fund()
    await catchUp(this.context.follower)
  }

  salt(): bigint {
    return this.#salt++
  }

  /** Alice buys from Bob. */
  pair(fill: number, more: Partial<FillInput> = {}): FillInput[] {
    const { alice, bob } = this.context
    return [
      { by: alice, side: 'LONG', fill, salt: this.salt(), ...more },
      { by: bob, side: 'SHORT', fill, salt: this.salt() },
    ]
  }

  /** Matches the fills in the database and settles them on the chain. Returns the transaction's hash. */
  async trade(fills: readonly FillInput[], ticks?: number): Promise<string> {
    const { exchange, test } = this.context
    const part = await exchange.part(fills, ticks)
    const hash = await exchange.send(part)
    await matchPart(test, part, hash)
    return hash
  }

  /** The database agrees with the contracts, and the read model with the write side. */
  async audit(): Promise<void> {
    const { exchange, test, users } = this.context
    await projectAll(test)
    await expectConservation(exchange, test.db, users)
    await expectPositions(exchange, test.db, users)
    await expectBooks(test.db)
  }

  async mismatches(): Promise<string[]> {
    const rows = await this.context.test.db
      .selectFrom('settlement_mismatches')
      .select('failure_kind')
      .execute()
    return rows.map(({ failure_kind }) => failure_kind)
  }

  /** Changes the state without a row, as no command would. */
  edit(change: (state: ExchangeState) => void): void {
    change(this.context.test.engine.state)
  }

  async freshDatabase(options: LocalEngineOptions = {}): Promise<ExchangeDatabase> {
    const fresh = await this.context.exchange.database(options)
    this.#open.push(fresh)
    return fresh
  }

  async expectSameAsFresh(): Promise<void> {
    const { exchange, test, chain } = this.context
    const fresh = await this.freshDatabase()
    await catchUp(exchange.follower(fresh, chain))
    expect(await chainState(test.db)).to.deep.equal(await chainState(fresh.db))
  }
}

export function useFollowerFixture(): FollowerFixture {
  const anvil = useAnvil({ chainId: CHAIN_ID })
  const fixture = new FollowerFixture()
  let exchange: ExchangeFixture
  let users: readonly [Wallet, Wallet]
  let snapshot: string
  before(async () => {
    exchange = await ExchangeFixture.deploy(anvil.url)
    users = [await exchange.user('alice'), await exchange.user('bob')]
  })
  beforeEach(async () => {
    snapshot = await exchange.rpc('evm_snapshot')
    await fixture.open(exchange, ...users)
  })
  afterEach(async () => {
    await exchange.rpc('evm_revert', snapshot)
    await fixture.close()
  })
  after(() => exchange.provider.destroy())
  return fixture
}
