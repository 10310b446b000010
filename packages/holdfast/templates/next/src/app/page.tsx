export default function Page() {
  return (
    <main>
      <h1>Durable orders</h1>
      <p>
        <code>PUT /orders/ID</code> starts an order, <code>GET /orders/ID</code> shows it, and{" "}
        <code>POST /orders/ID</code> answers whether it is shipped. The README has the commands.
      </p>
    </main>
  );
}
