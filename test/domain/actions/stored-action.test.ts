import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { fromStoredPayload, toStoredPayload } from '../../../domain/actions/stored-action.ts'
import { anySingleAction } from '../support/any-actions.ts'

describe('stored actions', () => {
  it('when an action is stored as JSON and read again, it is the same to the wei', () => {
    fc.assert(
      fc.property(anySingleAction, (action) => {
        const stored = JSON.parse(JSON.stringify(toStoredPayload(action)))
        expect(fromStoredPayload(action.kind, action.asOf, stored)).to.deep.equal(action)
      }),
    )
  })
})
