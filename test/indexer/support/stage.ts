/** A world, and for each test a database with its follower; the chain is put back after each. */
import { expect } from 'chai'
import type { Wallet } from 'ethers'
import { after, afterEach, before, beforeEach } from 'mocha'
import type { Follower } from '../../../indexer/ingest/follow.ts'
import type { Chain } from '../../../indexer/ports.ts'
import { useAnvil } from '../../support/anvil.ts'
import { chainState, expectBooks, expectConservation, expectPositions } from './audit.ts'
import type { TestDatabase } from './database.ts'
import { matchPart } from './desk.ts'
import { CHAIN_ID, catchUp, type FillInput, projectAll, World } from './world.ts'

export interface Scene {
  readonly world: World
  readonly test: TestDatabase
  readonly chain: Chain & { close(): void }
  readonly follower: Follower
  readonly alice: Wallet
  readonly bob: Wallet
  readonly users: readonly Wallet[]
}

export class Stage {
  #scene: Scene | undefined
  #salt = 1n
  readonly #open: { close(): unknown }[] = []

  get scene(): Scene {
    if (this.#scene === undefined) throw new Error('the scene is set before each test')
    return this.#scene
  }

  async set(world: World, alice: Wallet, bob: Wallet): Promise<void> {
    const test = await world.database()
    const chain = world.chain()
    this.#open.push(test, chain)
    const follower = world.follower(test, chain)
    this.#scene = { world, test, chain, follower, alice, bob, users: [alice, bob] }
  }

  async clear(): Promise<void> {
    for (const resource of this.#open.splice(0)) await resource.close()
  }

  /** Both have something to trade with; the follower knows it if it has passed. */
  async fund(): Promise<void> {
    const { world, alice, bob } = this.scene
    await world.deposit(alice, '10000')
    await world.deposit(bob, '10000')
  }

  async fundAndFollow(): Promise<void> {
    await this.fund()
    await catchUp(this.scene.follower)
  }

  salt(): bigint {
    return this.#salt++
  }

  /** Alice buys from Bob. */
  pair(fill: number, more: Partial<FillInput> = {}): FillInput[] {
    const { alice, bob } = this.scene
    return [
      { by: alice, side: 'LONG', fill, salt: this.salt(), ...more },
      { by: bob, side: 'SHORT', fill, salt: this.salt() },
    ]
  }

  /** Matched here, and settled on the chain. */
  async trade(fills: readonly FillInput[], ticks?: number): Promise<string> {
    const { world, test } = this.scene
    const part = await world.part(fills, ticks)
    const hash = await world.send(part)
    await matchPart(test.db, part, hash)
    return hash
  }

  /** Our books agree with the contracts and with themselves. */
  async audit(): Promise<void> {
    const { world, test, users } = this.scene
    await projectAll(test)
    await expectConservation(world, test.db, users)
    await expectPositions(world, test.db, users)
    await expectBooks(test.db)
  }

  async mismatches(): Promise<string[]> {
    const rows = await this.scene.test.db.selectFrom('settlement_mismatches').select('failure_kind').execute()
    return rows.map(({ failure_kind }) => failure_kind)
  }

  async freshDatabase(): Promise<TestDatabase> {
    const fresh = await this.scene.world.database()
    this.#open.push(fresh)
    return fresh
  }

  async expectSameAsFresh(): Promise<void> {
    const { world, test, chain } = this.scene
    const fresh = await this.freshDatabase()
    await catchUp(world.follower(fresh, chain))
    expect(await chainState(test.db)).to.deep.equal(await chainState(fresh.db))
  }
}

export function useStage(): Stage {
  const anvil = useAnvil({ chainId: CHAIN_ID })
  const stage = new Stage()
  let world: World
  let users: readonly [Wallet, Wallet]
  let snapshot: string
  before(async () => {
    world = await World.deploy(anvil.url)
    users = [await world.user('alice'), await world.user('bob')]
  })
  beforeEach(async () => {
    snapshot = await world.rpc('evm_snapshot')
    await stage.set(world, ...users)
  })
  afterEach(async () => {
    await world.rpc('evm_revert', snapshot)
    await stage.clear()
  })
  after(() => world.provider.destroy())
  return stage
}
