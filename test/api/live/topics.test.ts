import { expect } from 'chai'
import { ApiError } from '../../../api/errors.ts'
import { parsePosition, parseTopic, positionText, topicName } from '../../../api/live/topics.ts'

const codeOf = (run: () => unknown): string => {
  try {
    run()
  } catch (error) {
    return error instanceof ApiError ? error.code : String(error)
  }
  return 'accepted'
}

describe('names of topics', () => {
  it('when a name is printed and parsed, it is the same topic', () => {
    const names = [
      'market.1.book',
      'market.12.trades',
      'market.1.auction',
      'market.7.stats',
      'markets',
      'user',
    ]
    for (const name of [...names, 'system', 'market.3.candles.1m', 'market.3.candles.1w'])
      expect(topicName(parseTopic(name))).to.equal(name)
  })

  it('when there is no topic of that name, it is refused with the names that exist', () => {
    const names = ['', 'market', 'market.0.book', 'market.1', 'market.1.books', 'market.1.book.1m', 'users']
    for (const name of [...names, 'market.1.candles', 'market.1.candles.7m', 'market.01.book', 'toString'])
      expect(
        codeOf(() => parseTopic(name)),
        name,
      ).to.equal('TOPIC_NOT_FOUND')
  })

  it('when a position is printed and parsed, it is the same', () => {
    expect(parsePosition(positionText({ epoch: 3, seq: 71 }))).to.deep.equal({ epoch: 3, seq: 71 })
    for (const text of ['', '1', '1:', ':1', '1:-1', '1:1.5', 'x:1'])
      expect(
        codeOf(() => parsePosition(text)),
        text,
      ).to.equal('INVALID_FIELD')
  })
})
