"""The cause behind the cause: what happened to the pod or the machine of a member that was removed.

`read` reads files of several kinds, recognised by their content, into happenings; `join` finds those of a member, and
`words` says them.
"""
