/** The write side follows announced and applied changes of a market, and takes them back after a fork. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { TermsChanged } from '../../../domain/journal/action-rows.ts'
import { specAt } from '../../../domain/market/changes.ts'
import { fromStoredTerms } from '../../../domain/market/stored-terms.ts'
import type { Millis } from '../../../domain/units.ts'
import { parametersOf } from '../../../stack/deploy.ts'
import { catchUp } from '../support/exchange-fixture.ts'
import { useFollowerFixture } from '../support/follower-fixture.ts'

const [OPEN, CANCEL_ONLY] = [0, 1]
const DAY_MS = 86_400_000

describe('following the parameters and the mode of a market', () => {
  const fixture = useFollowerFixture()

  const traderOf = async () => {
    const { trader, provider } = fixture.context.exchange
    return trader.connect(await provider.getSigner(0))
  }
  const now = async (): Promise<number> =>
    ((await fixture.context.exchange.provider.getBlock('latest'))?.timestamp ?? 0) * 1000
  const terms = async () => {
    const row = await fixture.context.test.db.selectFrom('markets').select('terms').executeTakeFirstOrThrow()
    return fromStoredTerms(row.terms, fixture.context.exchange.spec)
  }
  const rows = async () =>
    (await fixture.context.test.db.selectFrom('journal').select('row').orderBy('seq').execute())
      .map(({ row }) => row as unknown as TermsChanged)
      .filter(({ kind }) => kind === 'terms_changed')
  const schedule = async (): Promise<number> => {
    const { exchange, follower } = fixture.context
    const from = (await now()) + DAY_MS + 60_000
    const next = { ...parametersOf(exchange.spec), maxLeverage: 10 }
    await (await (await traderOf()).scheduleParameters(next, from)).wait()
    await catchUp(follower)
    return from
  }

  it('when parameters are scheduled, they are in force from their time on; cancelled, they are not', async () => {
    const { exchange, follower } = fixture.context
    const from = await schedule()
    const leverageAt = async (at: number) => specAt(exchange.spec, await terms(), at as Millis).maxLeverage
    expect(await leverageAt(from - 1)).to.equal(exchange.spec.maxLeverage)
    expect(await leverageAt(from)).to.equal(10)
    await (await (await traderOf()).cancelScheduledParameters()).wait()
    await catchUp(follower)
    expect(await leverageAt(from)).to.equal(exchange.spec.maxLeverage)
    expect((await rows()).map(({ cause }) => cause)).to.deep.equal([
      'parameters_scheduled',
      'schedule_cancelled',
    ])
  })

  it('when an announcement stores a restriction that was due, the mode is the stored one and only the new one is pending', async () => {
    const { exchange, follower } = fixture.context
    const trader = await traderOf()
    await (await trader.restrictMode(CANCEL_ONLY)).wait()
    await exchange.rpc('evm_increaseTime', 6)
    const reopens = (await now()) + 20_000
    await (await trader.scheduleMode(OPEN, reopens)).wait()
    await catchUp(follower)
    expect(await terms()).to.deep.include({
      mode: 'cancel_only',
      pending: { parameters: null, mode: { mode: 'open', activeFrom: reopens }, restriction: null },
    })
    expect((await rows()).map(({ cause }) => cause)).to.deep.equal([
      ...['mode_restricted', 'changes_applied', 'mode_scheduled'],
    ])
  })

  it('when a batch stores due parameters, they are those of the market and nothing is pending', async () => {
    const { exchange, follower } = fixture.context
    await fixture.fundAndFollow()
    const from = await schedule()
    await exchange.rpc('evm_increaseTime', (from - (await now())) / 1000 + 5)
    await exchange.rpc('evm_mine')
    await fixture.trade(fixture.pair(10))
    await catchUp(follower)
    const { parameters, pending } = await terms()
    expect(parameters).to.include({
      maxLeverage: 10,
      imr: exchange.spec.imr,
      takerFee: exchange.spec.takerFee,
    })
    expect(parameters.reports).to.deep.include({ maxAge: 10_000 })
    expect(pending.parameters).to.equal(null)
  })

  it('when a fork removes the announcement, the terms before it are stored again', async () => {
    const { exchange, follower } = fixture.context
    await schedule()
    await exchange.rpc('anvil_reorg', 1, [])
    await catchUp(follower)
    expect((await terms()).pending.parameters).to.equal(null)
    expect((await rows()).map(({ rollback }) => rollback)).to.deep.equal([false, true])
  })
})
