import { expect } from 'chai'
import Fastify from 'fastify'
import { describe, it } from 'mocha'
import { ApiError } from '../../../api/errors.ts'
import { handleErrors } from '../../../api/http/errors.ts'
import { errorsByStatus, errorsOf } from '../../../api/http/operation-errors.ts'
import { closed, PositiveInteger } from '../../../api/wire/schema.ts'
import { takeUndeclared } from '../../declared-errors.ts'

describe('the error codes of an operation', () => {
  it('when a route is public and has no fields, it lists only what every operation answers', () => {
    expect(errorsOf({ method: 'GET', schema: {} })).to.deep.equal([
      'UNKNOWN_FIELD',
      'MALFORMED_REQUEST',
      'REQUEST_TIMEOUT',
      'RATE_LIMITED',
      'TOO_MANY_CONNECTIONS',
      'INTERNAL',
      'DATABASE_UNAVAILABLE',
      'LIMITS_UNAVAILABLE',
      'SHUTTING_DOWN',
    ])
  })

  it('when a route has a body, parameters and a caller, its codes follow from them', () => {
    const schema = {
      body: closed({ size: PositiveInteger('A size.') }),
      params: closed({ user_id: PositiveInteger('') }),
    }
    const codes = errorsOf({ method: 'POST', config: { access: 'user' }, schema })
    expect(codes).to.include.members([
      'INVALID_JSON',
      'MISSING_FIELD',
      'INVALID_FIELD',
      'NOT_YOURS',
      'READ_ONLY_KEY',
    ])
    const read = errorsOf({ method: 'POST', config: { access: 'user', readOnly: true }, schema })
    expect(read).to.not.include('READ_ONLY_KEY')
  })

  it('when a route declares a code, it is listed under the status of the catalogue', () => {
    const byStatus = new Map(
      errorsByStatus({ method: 'GET', config: { errors: ['NO_POSITION', 'SALT_USED'] }, schema: {} }),
    )
    expect(byStatus.get(400)).to.include('NO_POSITION')
    expect(byStatus.get(409)).to.deep.equal(['SALT_USED'])
  })

  it('when an operation answers a code that its route does not declare, the tests notice', async () => {
    const app = Fastify()
    handleErrors(app)
    const schema = { response: { 200: closed({}) } }
    const fail = (): never => {
      throw new ApiError('SALT_USED')
    }
    app.get('/undeclared', { schema }, fail)
    app.get('/declared', { schema, config: { errors: ['SALT_USED'] } }, fail)
    for (const url of ['/declared', '/undeclared', '/nothing']) await app.inject({ url })
    expect(takeUndeclared()).to.deep.equal(['GET /undeclared SALT_USED'])
    await app.close()
  })
})
