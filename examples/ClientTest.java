// A test of a client of petstore, to start from. Run "go build" in .. once,
// and then "java ClientTest.java" here (Java 17 or newer). With JUnit, main becomes
// a method with @Test.
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;

class ClientTest {
    static final HttpClient http = HttpClient.newHttpClient();
    static final String REX = "{\"name\":\"Rex\",\"categoryId\":7}";

    static String base; // the base URL of the API, such as http://127.0.0.1:54321/v1

    /** The client under test: put yours in its place. It tries up to four times. */
    static void createPet(String pet) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(base + "/pets"))
            .header("Authorization", "Bearer test")
            .header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString(pet))
            .build();
        for (int tries = 1; ; tries++) {
            try {
                var response = http.send(request, HttpResponse.BodyHandlers.ofString());
                if (response.statusCode() < 400) return;
                throw new IOException(response.statusCode() + " " + response.body());
            } catch (IOException e) {
                if (tries == 4) throw e;
            }
        }
    }

    /**
     * Starts petstore. It stops when its standard input is closed, which happens when
     * this process ends, also if it is killed.
     */
    static Process start() throws Exception {
        var program = Path.of(ClientTest.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        var binary = program.resolveSibling("../petstore");
        if (!Files.isRegularFile(binary)) throw new IOException("there is no " + binary + ": build petstore first, with \"go build\"");
        var builder = new ProcessBuilder(binary.toString(), "-addr", "127.0.0.1:0", "-stdin");
        builder.environment().put("PETSTORE_API_KEY", "test");
        builder.redirectError(ProcessBuilder.Redirect.INHERIT); // petstore reports why it cannot start
        var petstore = builder.start();
        base = petstore.inputReader().readLine();
        if (base == null) throw new IOException("petstore did not start; standard error says why");
        return petstore;
    }

    public static void main(String[] args) throws Exception {
        var petstore = start();
        try {
            // The first request gets an error, the second a reset connection, and the
            // third no answer, although its pet is added.
            admin("PUT", "/__admin/fault?code=503,rst,lost&operation=createPet");

            createPet(REX);

            equal(find("(\"id\")", admin("GET", "/v1/pets?limit=100")).size(), 2);
            var journal = admin("GET", "/__admin/requests");
            equal(find("\"status\":(\\d+),\"seconds\"", journal), List.of("503", "0", "0", "201"));
            System.out.println("ok - createPet is retried");
        } finally {
            petstore.getOutputStream().close();
        }
    }

    /** Sends a request of the test itself, which is not recorded and to which no fault is applied. */
    static String admin(String method, String path) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(base).resolve(path))
            .header("Authorization", "Bearer test")
            .header("Petstore-Observer", "test")
            .method(method, HttpRequest.BodyPublishers.noBody())
            .build();
        var response = http.send(request, HttpResponse.BodyHandlers.ofString());
        if (response.statusCode() >= 400) throw new IOException(method + " " + path + ": " + response.body());
        return response.body();
    }

    /** Returns the first group of each match. */
    static List<String> find(String regex, String text) {
        return Pattern.compile(regex).matcher(text).results().map(match -> match.group(1)).toList();
    }

    static void equal(Object got, Object want) {
        if (!got.equals(want)) throw new AssertionError("got " + got + ", want " + want);
    }
}
