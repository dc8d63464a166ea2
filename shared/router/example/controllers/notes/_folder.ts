import { AccessDenied, defineFolder } from '../../../index.ts';
import { members, userOf } from '../../members.ts';

export const folder = defineFolder({
  guard: members,
  before({ headers }) {
    const user = userOf(headers);
    if (user === undefined) throw new AccessDenied({ scheme: 'session' });
    return { user };
  },
});
