// The page: logs in, writes notes, and shows those that come.
const list = document.querySelector('#notes');

function show(text) {
  const item = document.createElement('li');
  item.textContent = text;
  list.prepend(item);
}

async function send(path, form) {
  const response = await fetch(path, {
    method: 'POST',
    body: new URLSearchParams(new FormData(form)),
  });
  if (!response.ok) show(`${response.status} ${(await response.json()).title}`);
  return response.ok;
}

function listen() {
  new EventSource('news').addEventListener('note', ({ data }) => show(JSON.parse(data).text));
}

document.querySelector('#login').addEventListener('submit', async (event) => {
  event.preventDefault();
  if (await send('session', event.target)) listen();
});
document.querySelector('#write').addEventListener('submit', async (event) => {
  event.preventDefault();
  if (await send('notes', event.target)) event.target.reset();
});
