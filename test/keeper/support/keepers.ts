/** Keeper processes of one market, and two traders whose batches they settle. */
import type { ChainFixture } from './chain-fixture.ts'
import { expectConsistent } from './invariants.ts'
import { KeeperProcess, until } from './keeper-process.ts'
import { addressOf, type Trader } from './market-fixture.ts'

export class Keepers {
  readonly fixture: ChainFixture
  readonly alice: Trader
  readonly bob: Trader
  readonly #running: KeeperProcess[] = []

  private constructor(fixture: ChainFixture, alice: Trader, bob: Trader) {
    this.fixture = fixture
    this.alice = alice
    this.bob = bob
  }

  /** Both traders have deposits, and the market has a price. */
  static async on(fixture: ChainFixture): Promise<Keepers> {
    await fixture.report(1000)
    return new Keepers(fixture, await fixture.depositor('alice'), await fixture.depositor('bob'))
  }

  async start(env: Record<string, string> = {}): Promise<KeeperProcess> {
    const keeper = await KeeperProcess.start(this.fixture, env)
    this.#running.push(keeper)
    return keeper
  }

  async startReady(env: Record<string, string> = {}): Promise<KeeperProcess> {
    const keeper = await this.start(env)
    await keeper.ready()
    return keeper
  }

  /** A batch in which alice buys `steps` from bob. */
  async cross(steps = 20): Promise<void> {
    const { fixture, alice, bob } = this
    await fixture.report(1000)
    await fixture.place({ by: alice, side: 'LONG', steps, limit: 1000 })
    await fixture.place({ by: bob, side: 'SHORT', steps, limit: 1000 })
    await fixture.auction().run()
  }

  /** The indexer follows until every batch is mined and alice holds so much. */
  untilHeld(steps: number, keeper: KeeperProcess): Promise<void> {
    return until(
      async () => {
        await this.fixture.follow()
        const actions = await this.fixture.actions()
        const isSettled = actions.every(({ status }) => status === 'MINED')
        return isSettled && (await this.fixture.position(this.alice)) === BigInt(steps)
      },
      () => keeper.output,
    )
  }

  async requestFaucet(): Promise<void> {
    const { fixture, alice } = this
    await fixture.db
      .insertInto('faucet_requests')
      .values({
        kind: 'faucet',
        user_id: alice.account,
        payload: JSON.stringify({ wallet: addressOf(alice.wallet) }),
        status: 'REQUESTED',
        tx_hash: null,
        error: null,
        created_at: 0,
      })
      .execute()
  }

  async close(): Promise<void> {
    for (const keeper of this.#running.splice(0)) await keeper.kill('SIGKILL')
    await expectConsistent(this.fixture)
    await this.fixture.close()
  }
}
