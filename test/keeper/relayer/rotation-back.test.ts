/** A market's relayer lane whose key changes twice, back to a former key, while nonces are unused or transactions are not sent. */
import { expect } from 'chai'
import { Wallet } from 'ethers'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Fence } from '../../../db/fence.ts'
import { ACTION_LIFETIME } from '../../../domain/settlement/durations.ts'
import type { Chain } from '../../../keeper/ports.ts'
import { perpetual } from '../../support/markets.ts'
import {
  adjustKey,
  type ChainFixture,
  laneKey,
  type SettlementFixture,
  useChain,
} from '../support/chain-fixture.ts'
import type { Auction } from '../support/engine-turns.ts'
import { expectConsistent } from '../support/invariants.ts'
import type { Trader } from '../support/market-fixture.ts'
import { openTrading } from '../support/trading.ts'

/** Both are operators of the market and have gas. */
const FIRST = laneKey
const SECOND = adjustKey
const addressOf = (key: string): string => new Wallet(key).address.toLowerCase()

describe('the rotation of a relayer key back to a former one', function () {
  this.timeout(90_000)
  const chain = useChain(perpetual)
  let fixture: ChainFixture
  let settlement: SettlementFixture
  let auction: Auction
  let settling: Fence
  let alice: Trader
  let bob: Trader
  let isSwallowing: boolean

  beforeEach(async () => {
    ;({ fixture, auction, settling, alice, bob } = await openTrading(chain()))
    isSwallowing = false
    await start(FIRST, SECOND)
  })

  afterEach(async () => {
    try {
      await expectConsistent(fixture)
      expect(await fixture.mode()).to.equal('open')
    } finally {
      await fixture.close()
    }
  })

  const dropping = (wrapped: Chain): Chain => ({
    ...wrapped,
    send: (raw) => (isSwallowing ? Promise.resolve({ kind: 'sent' }) : wrapped.send(raw)),
  })

  async function start(key: string, ...formerKeys: string[]): Promise<void> {
    settlement = fixture.settlement({ chain: dropping, key, formerKeys })
    await settlement.start(settling)
  }

  /** One pass of a keeper that is killed at the point. */
  async function killAt(at: 'after-reserving' | 'after-signing', key: string, ...formerKeys: string[]) {
    settlement = fixture.settlement({
      chain: dropping,
      key,
      formerKeys,
      killPoint: (point) => {
        if (point === at) throw new Error('killed')
      },
    })
    await settlement.step(settling).catch(() => {})
  }

  async function match(steps: number): Promise<void> {
    await fixture.place({ by: alice, side: 'LONG', steps, limit: 1000 })
    await fixture.place({ by: bob, side: 'SHORT', steps, limit: 1000 })
    await auction.run()
  }

  const settleAll = (limitMs?: number) => settlement.settleAll(settling, limitMs)
  const statuses = async () => (await fixture.actions()).map(({ status }) => status)
  const sentBy = async (key: string) =>
    (await fixture.transactions())
      .filter(({ relayer }) => relayer === addressOf(key))
      .map(({ nonce, purpose, status }) => [nonce, purpose, status])

  for (const isKept of [true, false]) {
    const others = (key: string) => (isKept ? [key] : [])
    const how = isKept ? 'kept' : 'gone'

    it(`when the first key is ${how} for a moment while its transactions are not mined, it goes on behind them`, async () => {
      isSwallowing = true
      await match(10)
      await match(5)
      await settlement.step(settling)
      await start(SECOND, ...others(FIRST))
      await settlement.step(settling)
      await start(FIRST, ...others(SECOND))
      await match(20)
      isSwallowing = false
      await settleAll()
      expect(await statuses()).to.deep.equal(['MINED', 'MINED', 'MINED'])
      expect(await fixture.position(alice)).to.equal(35n)
      expect(await sentBy(SECOND)).to.deep.equal([])
    })

    it(`when both keys have reserved a nonce and were killed, and the other key is ${how}, each action settles once`, async () => {
      await match(10)
      await killAt('after-reserving', FIRST, ...others(SECOND))
      await start(SECOND, ...others(FIRST))
      await killAt('after-reserving', SECOND, ...others(FIRST))
      await start(FIRST, ...others(SECOND))
      await match(20)
      await settleAll()
      expect(await statuses()).to.deep.equal(['MINED', 'MINED'])
      expect(await fixture.position(alice)).to.equal(30n)
    })

    it(`when the keeper is killed between store and send, and the key, which is ${how}, changes to and fro, it settles once`, async () => {
      await match(10)
      await killAt('after-signing', FIRST, ...others(SECOND))
      await start(SECOND, ...others(FIRST))
      await match(20)
      await settlement.step(settling)
      await start(FIRST, ...others(SECOND))
      await match(40)
      await settleAll()
      expect(await statuses()).to.deep.equal(['MINED', 'MINED', 'MINED'])
      expect(await fixture.position(alice)).to.equal(70n)
    })

    it(`when an action of the first key, which is ${how}, has outlived its life and the key returns, it is not executed, and the key goes on`, async () => {
      isSwallowing = true
      await match(10)
      await settlement.step(settling)
      await start(SECOND, ...others(FIRST))
      await settlement.settleAll(settling, ACTION_LIFETIME + 2_000).catch(() => {})
      isSwallowing = false
      await start(FIRST, ...others(SECOND))
      await settleAll(ACTION_LIFETIME + 20_000)
      await fixture.report(1000, Date.now())
      await auction.run()
      await settleAll(20_000)
      expect(await fixture.position(alice)).to.equal(10n)
      expect((await statuses()).filter((each) => each === 'MINED')).to.have.length(1)
      for (const key of [FIRST, SECOND]) {
        const mined = (await sentBy(key)).filter(([, , status]) => status === 'MINED').map(([nonce]) => nonce)
        expect(mined).to.deep.equal(mined.map((_, at) => at))
      }
    })
  }
})
