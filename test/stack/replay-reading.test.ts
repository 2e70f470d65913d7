import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { type Action, createPlanner } from '../../stack/replay/plan.ts'
import { type Recorded, readerFor } from '../../stack/replay/recorded.ts'

const E18 = 10n ** 18n

function recorded(name: string): Recorded[] {
  const url = new URL(`./fixtures/${name}`, import.meta.url)
  const [header = '', ...lines] = readFileSync(url, 'utf8').trim().split('\n')
  const read = readerFor(header)
  return lines.flatMap((line) => read(line))
}

function planned(name: string): { actions: Action[]; skipped: number } {
  const planner = createPlanner()
  const actions = recorded(name).flatMap((event) => planner.plan(event))
  return { actions, skipped: planner.skipped }
}

/** `place 10 LONG 100 x100`, `take ...`, `cancel 10`, `late 10`, `price 100`. */
const brief = (action: Action): string => {
  if (action.kind === 'price') return `price ${Number(action.price) / 1e18}`
  if (action.kind === 'cancel') return `${action.late ? 'late' : 'cancel'} ${action.ref}`
  const { take, ref, side, price, size } = action
  return `${take ? 'take' : 'place'} ${ref} ${side} ${Number(price) / 1e18} x${Number(size) / 1e18}`
}

describe('stack/replay reading', () => {
  it('when the file is LOBSTER, it derives aggressors, splits partial cancels and skips unknown orders', () => {
    const { actions, skipped } = planned('lobster.csv')
    expect(actions.map(brief)).to.deep.equal([
      'place 10 LONG 100 x100',
      'place 11 SHORT 100.1 x50',
      'cancel 10',
      'place 10/1 LONG 100 x60',
      'take 11/take/2 LONG 100.1 x20',
      'price 100.1',
      'price 100.05',
      'take 11/take/3 LONG 100.1 x30',
      'late 11',
      'price 100.1',
      'cancel 10/1',
    ])
    expect(skipped).to.equal(1)
    expect(actions[0]?.at).to.equal(34_200_500)
  })

  it("when the file is an order log, it pairs the two fills of a trade and takes the older order's price", () => {
    const { actions, skipped } = planned('order-log.csv')
    expect(actions.map(brief)).to.deep.equal([
      'place 1 SHORT 100.5 x2',
      'place 2 LONG 99.5 x1',
      'place 3 LONG 101 x3',
      'price 100.5',
      'late 1',
      'cancel 2',
    ])
    expect(recorded('order-log.csv')).to.deep.include({
      kind: 'traded',
      at: 1211,
      price: 1005n * (E18 / 10n),
      size: 2n * E18,
    })
    expect(skipped).to.equal(1)
  })

  it('when the header is unknown, it throws and names the two valid headers', () => {
    expect(() => readerFor('a,b,c')).to.throw('unknown header "a,b,c": expected "time,type')
  })
})
