/** Where the identity provider sends the visitor back to. */
import { useEffect, useState } from 'preact/hooks'
import { navigate } from '../base/router.ts'
import { toast } from '../base/toasts.ts'
import { finishSignIn } from './sign-in.ts'

/** The query is read once: the code in it is valid once. */
let isStarted = false

export function SignedInScreen() {
  const [error, setError] = useState<string | null>(null)
  useEffect(() => {
    if (isStarted) return
    isStarted = true
    finishSignIn(new URLSearchParams(location.search)).then(
      () => {
        toast({ id: 'session', kind: 'good', title: 'Signed in' })
        navigate('/account', { replace: true })
      },
      (reason: Error) => setError(reason.message),
    )
  }, [])
  return (
    <section class="page">
      <h1>{error === null ? 'Signing in …' : 'Not signed in'}</h1>
      {error === null ? null : (
        <>
          <p class="note bad" role="alert">
            {error}
          </p>
          <a class="button" href="/account">
            Try again
          </a>
        </>
      )}
    </section>
  )
}
