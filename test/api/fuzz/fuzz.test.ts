/** A share of `npm run fuzz:requests`. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { fuzzLive } from './live.ts'
import { fuzzRequests } from './run.ts'

describe('random requests', function () {
  this.timeout(120_000)

  it('when requests to the endpoints of accounts are random or altered, none is executed, fails inside or hangs, and each error names its field', async () => {
    const { problems, answers, operations } = await fuzzRequests(1_200, 7, 'accounts')
    expect(problems).to.deep.equal([])
    expect(operations).to.be.at.least(21)
    // Reads with valid fields are answered, and requests are refused for many reasons.
    expect(answers.get('200')).to.be.greaterThan(50)
    expect(answers.size).to.be.greaterThan(12)
  })
  it('when requests to the other endpoints are random or altered, the same holds', async () => {
    const { problems, answers, operations } = await fuzzRequests(600, 7, 'markets')
    expect(problems).to.deep.equal([])
    expect(operations).to.be.at.least(30)
    expect(answers.size).to.be.greaterThan(12)
  })
  it('when messages of the live feed are random or altered, the same holds', async () => {
    const { problems, answers } = await fuzzLive(300, 7)
    expect(problems).to.deep.equal([])
    expect(answers.size).to.be.greaterThan(8)
  })
})
