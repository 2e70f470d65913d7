/** Which fills of a chunk the readers of the feed have already. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { feedFills } from '../../../indexer/project/orders/changes.ts'
import type { ReadFill } from '../../../indexer/project/tables/fills.ts'

const fill = (part: number, place: number): ReadFill =>
  ({ fill_id: `1-3-${part}-${place}`, batch_id: 3, part, place }) as ReadFill
const known = (fills: ReturnType<typeof feedFills>) =>
  fills.map(({ fill_id, is_known }) => [fill_id, is_known])

describe('the fills of a chunk in the feed', () => {
  it('when a part was there before, its fills are known, and those that join it are not', () => {
    const before = new Map([['3-1', [fill(1, 0)]]])
    const fills = [[fill(1, 0), fill(1, 1)], [fill(2, 0)]]
    expect(known(feedFills(before, { fills, removedFills: [] }))).to.deep.equal([
      ['1-3-1-0', true],
      ['1-3-1-1', false],
      ['1-3-2-0', false],
    ])
  })

  it('when a rolled-back part is removed first, what is left of it is not known', () => {
    const before = new Map([['3-1', [fill(1, 0), fill(1, 1)]]])
    const removedFills = [{ market_id: 1, batch_id: 3, part: 1 }]
    expect(known(feedFills(before, { fills: [[fill(1, 0)]], removedFills }))).to.deep.equal([
      ['1-3-1-0', false],
    ])
  })
})
