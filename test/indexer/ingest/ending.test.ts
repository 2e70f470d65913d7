/** The write side follows when a market closes, and takes it back after a fork. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { catchUp } from '../support/exchange-fixture.ts'
import { useFollowerFixture } from '../support/follower-fixture.ts'

const [OPEN, SETTLING] = [0, 3]
const DAY_MS = 86_400_000

describe('following the close of a market', () => {
  const fixture = useFollowerFixture()

  const traderOf = async () => {
    const { trader, provider } = fixture.context.exchange
    return trader.connect(await provider.getSigner(0))
  }
  const inADay = async (): Promise<number> => {
    const block = await fixture.context.exchange.provider.getBlock('latest')
    return ((block?.timestamp ?? 0) + 60) * 1000 + DAY_MS
  }
  const times = () =>
    fixture.context.test.db
      .selectFrom('markets')
      .select(['expires_at', 'settling_at', 'dispute_window'])
      .executeTakeFirstOrThrow()
  const rows = async () =>
    (await fixture.context.test.db.selectFrom('journal').select('row').orderBy('seq').execute())
      .map(({ row }) => row as { kind: string; settling_at?: number; rollback?: boolean })
      .filter(({ kind }) => kind === 'ending_changed')
      .map(({ settling_at, rollback }) => [settling_at, rollback])

  it('when a close is scheduled and then replaced by another mode, its time is stored and then cleared', async () => {
    const { follower, exchange } = fixture.context
    const { expiresAt, disputeWindow } = exchange.spec
    const listed = { expires_at: expiresAt, settling_at: 0, dispute_window: disputeWindow }
    expect(await times()).to.deep.equal(listed)
    const [trader, at] = [await traderOf(), await inADay()]
    await (await trader.scheduleMode(SETTLING, at)).wait()
    await catchUp(follower)
    expect(await times()).to.deep.equal({ ...listed, settling_at: at })
    await (await trader.scheduleMode(OPEN, at)).wait()
    await (await trader.scheduleMode(OPEN, at + 1)).wait()
    await catchUp(follower)
    expect(await times()).to.deep.equal(listed)
    // The second change to open changes nothing.
    expect(await rows()).to.deep.equal([
      [at, false],
      [0, false],
    ])
  })

  it('when the dispute window is extended, the new one is stored', async () => {
    await (await (await traderOf()).extendDisputeWindow(2 * DAY_MS)).wait()
    await catchUp(fixture.context.follower)
    expect((await times()).dispute_window).to.equal(2 * DAY_MS)
  })

  it('when a fork removes a scheduled close, the times before it are in force', async () => {
    const { follower, exchange } = fixture.context
    const [trader, at] = [await traderOf(), await inADay()]
    await (await trader.scheduleMode(SETTLING, at)).wait()
    await catchUp(follower)
    await exchange.rpc('anvil_reorg', 1, [])
    await catchUp(follower)
    expect((await times()).settling_at).to.equal(0)
    expect(await rows()).to.deep.equal([
      [at, false],
      [at, true],
    ])
  })
})
