// The connection to the server: comes back by itself, and says so.

const GONE = { 4404: "There is no such game here.", 4403: "This page may not join that game." };
const FIRST_WAIT = 300, LONGEST_WAIT = 3000;  // milliseconds

/** Connect. heard(message) for each message; changed(words): "" while connected, else why not. */
export function connect(address, heard, changed) {
  let socket, wait = FIRST_WAIT;
  function open() {
    socket = new WebSocket(address);
    socket.onopen = () => { wait = FIRST_WAIT; changed(""); };
    socket.onmessage = (event) => heard(JSON.parse(event.data));
    socket.onclose = (event) => {
      if (event.code in GONE) return changed(GONE[event.code]);
      changed("Connection lost. Trying again…");
      setTimeout(open, wait);
      wait = Math.min(2 * wait, LONGEST_WAIT);
    };
  }
  open();
  return (message) => {
    const ready = socket.readyState === WebSocket.OPEN;
    if (ready) socket.send(JSON.stringify(message));
    return ready;
  };
}
